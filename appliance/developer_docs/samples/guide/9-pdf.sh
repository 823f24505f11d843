api "$WEB_URL/api/integration/requests/$PROCESO/document" -o var/firmado.pdf
rubrica verify var/firmado.pdf
if command -v pdfsig >/dev/null; then pdfsig var/firmado.pdf; fi
