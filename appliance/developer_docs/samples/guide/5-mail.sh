mails() { api "$WEB_URL/api/integration/test/signers/$CUIL/mails"; }
was_asked() { mails | grep -q "$PROCESO"; }
wait_for was_asked
mails | field 0 asunto
mails | field 0 texto
