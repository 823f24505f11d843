rubrica() { .venv/bin/rubrica --settings var/settings.toml "$@"; }
api() { curl -sS --fail-with-body -H "X-Api-Key: $API_KEY" "$@"; }
field() {
  .venv/bin/python -c 'import functools, json, sys
step = lambda data, key: data[int(key) if key.isdigit() else key]
print(functools.reduce(step, sys.argv[1:], json.load(sys.stdin)))' "$@"
}
wait_for() {
  for _ in $(seq 60); do "$@" >/dev/null 2>&1 && return; sleep 1; done
  echo "no: $*" >&2
  return 1
}

WEB_URL={web_url}
rubrica integrator list | grep '^mi-app ' || rubrica integrator create mi-app "Mi app"
rubrica integrator mail mi-app --on
API_KEY=$(rubrica integrator key create mi-app backend --scope all | tail -n 1)
api "$WEB_URL/api/integration/diagnose" | field entorno
