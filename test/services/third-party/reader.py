"""Reads an event stream with Python's standard library alone, and resumes it: python3 third-party-reader.py <url>"""
import http.client, json, sys, time, urllib.request

url, cursor, retry = sys.argv[1], None, 3.0
while True:
    try:
        request = urllib.request.Request(url, headers={'Accept': 'text/event-stream'})
        if cursor:
            request.add_header('Last-Event-ID', cursor)
        # A hub says something at least every 25 s, so a line that is silent for longer is dead.
        with urllib.request.urlopen(request, timeout=60) as response:
            if response.status == 204:
                break  # the channel has ended, and we have all of it
            id, type, data = cursor, 'message', []
            for line in iter(response.readline, b''):
                field, _, value = line.decode('utf-8', 'replace').rstrip('\n').partition(':')
                value = value.removeprefix(' ')
                if not line.endswith(b'\n'): break  # cut off
                elif field == 'data': data.append(value)
                elif field == 'event': type = value
                elif field == 'id': id = value
                elif field == 'retry' and value.isdigit(): retry = int(value) / 1000
                elif line == b'\n':  # only now is the event whole, and its id the place to come back to
                    cursor = id
                    if data:
                        print(json.dumps({'type': type, 'data': '\n'.join(data)}), flush=True)
                    type, data = 'message', []
    except (OSError, http.client.HTTPException) as error:
        print(f'{error!r}, again in {retry} s', file=sys.stderr)
    time.sleep(retry)
