wait_for grep "solicitud.firmada $PROCESO" events.txt
cat events.txt
