api "$WEB_URL/api/integration/requests/$PROCESO/document" -o firmado.pdf
rubrica verify firmado.pdf
if command -v pdfsig >/dev/null; then pdfsig firmado.pdf; fi
