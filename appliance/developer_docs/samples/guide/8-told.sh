wait_for grep "solicitud.firmada $PROCESO" var/events.txt
cat var/events.txt
