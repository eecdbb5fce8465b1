import { type ProxyName, proxyTitles } from './proxy-name.ts'
import type { Change, CheckName, Remedy, Server } from './report.ts'

/** What to change so that a check passes: the lines for the proxy in front; for an unknown proxy, those of the usual ones. */
export function remedyFor(name: CheckName, server: Pick<Server, 'proxy' | 'proxyText'>): Remedy {
  const { cost, lines } = remedies[name] ?? { cost: '', lines: {} }
  const { proxy, proxyText } = server
  const known = proxy && lines[proxy] ? [proxy] : usual.filter((each) => lines[each])
  return {
    culprit: proxy ? `${proxyText ?? proxyTitles[proxy]}, which answers here` : 'a proxy between you and the hub',
    cost,
    changes: known.map((each) => changeOf(each, lines[each] ?? [])),
  }
}

/** For a fault in the settings of the hub itself. */
export function hubRemedy(cost: string, lines: readonly string[]): Remedy {
  return { culprit: 'the hub itself', cost, changes: [{ where: 'rejoin serve', lines }] }
}

// Proxies that people run themselves. Services such as Cloudflare are recognised by their headers.
const usual: readonly ProxyName[] = ['nginx', 'haproxy', 'varnish', 'caddy', 'apache']

const files: Readonly<Record<ProxyName, string>> = {
  nginx: 'the location of /events',
  haproxy: 'the frontend or backend of the hub',
  varnish: 'the VCL',
  caddy: 'the Caddyfile',
  apache: 'the VirtualHost',
  cloudflare: 'the dashboard; not tested by us',
  alb: 'the load balancer; not tested by us',
  fastly: 'the VCL of the service; not tested by us',
}

function changeOf(proxy: ProxyName, lines: readonly string[]): Change {
  return { where: `${proxyTitles[proxy]}, ${files[proxy]}`, lines }
}

type Lines = Partial<Record<ProxyName, readonly string[]>>

const remedies: Partial<Record<CheckName, { readonly cost: string; readonly lines: Lines }>> = {
  redirect: {
    cost: 'Each reconnect takes another round trip, and on the way to another origin a browser may drop the cursor or the token.',
    lines: {
      nginx: ['remove: return 301 …;   (and 302, 307, 308; rewrite … redirect;)'],
      haproxy: ['remove: http-request redirect …'],
      varnish: ['remove: return (synth(301, …));'],
      caddy: ['remove: redir …'],
      apache: ['remove: Redirect …   (and RewriteRule … [R])'],
      cloudflare: ['remove: the redirect rule for /events'],
      alb: ['remove: the redirect action for /events'],
      fastly: ['remove: error 301 …'],
    },
  },
  stream: {
    cost: 'Events arrive late and in lumps. Our client notices and polls instead; a native EventSource waits.',
    lines: {
      nginx: [
        'proxy_buffering off;',
        'remove: proxy_ignore_headers X-Accel-Buffering;',
        'remove: proxy_hide_header X-Accel-Buffering;   (if another nginx is in front)',
      ],
      haproxy: ['option http-no-delay', 'remove: http-response wait-for-body …', 'remove: filter compression'],
      varnish: [
        'sub vcl_recv { if (req.url ~ "^/(events|stream|poll)") { return (pass); } }',
        'remove: set beresp.do_stream = false;',
      ],
      caddy: ['remove: buffer_responses   (and response_buffers …)', 'remove: encode …'],
      apache: [
        'ProxyPass "/events" "http://127.0.0.1:4747/events" flushpackets=on',
        'remove: SetOutputFilter BUFFER   (and DEFLATE, SUBSTITUTE, RATE_LIMIT)',
      ],
      cloudflare: ['remove: features that read the answer, such as Email Obfuscation, for /events'],
      fastly: ['set beresp.do_stream = true;'],
    },
  },
  'header-cursor': {
    cost: 'A native EventSource that reconnects loses the events between. Our client notices and uses the query.',
    lines: {
      nginx: ['remove: proxy_set_header Last-Event-ID …;', 'remove: proxy_pass_request_headers off;'],
      haproxy: ['remove: http-request del-header Last-Event-ID'],
      varnish: ['remove: unset req.http.Last-Event-ID;   (and unset bereq.http.Last-Event-ID;)'],
      caddy: ['remove: header_up -Last-Event-ID   (and request_header -Last-Event-ID)'],
      apache: ['remove: RequestHeader unset Last-Event-ID'],
      cloudflare: ['remove: the transform rule that removes Last-Event-ID'],
      alb: ['routing.http.drop_invalid_header_fields.enabled = false'],
      fastly: ['remove: unset bereq.http.Last-Event-ID;'],
    },
  },
  'query-cursor': {
    cost: 'A page that resumes after a reload, and a client that cannot set headers, start at the newest event.',
    lines: {
      nginx: [
        'proxy_pass http://127.0.0.1:4747;   (without a path, or with $is_args$args behind it)',
        'remove: rewrite ^(.*)$ $1? …;',
      ],
      haproxy: ['remove: http-request set-query …', 'remove: http-request set-uri %[path]'],
      varnish: ['remove: set req.url = regsub(req.url, "\\?.*$", "");'],
      caddy: ['remove: uri query …   (and rewrite * {path}?)'],
      apache: ['remove: RewriteRule … [QSD]'],
      cloudflare: ['remove: the transform rule that rewrites the query'],
      fastly: ['remove: set req.url = querystring.remove(req.url);'],
    },
  },
  ids: {
    cost: 'The hub does not know the ids that come back: each reconnect is a gap, and the page has to load its state again.',
    lines: {
      nginx: ['remove: sub_filter …;   (or take text/event-stream out of sub_filter_types)'],
      haproxy: ['remove: filter lua.…   (any filter that changes the body)'],
      varnish: ['remove: set beresp.filters = …;   (any filter that changes the body)'],
      caddy: ['remove: replace …   (any handler that changes the body)'],
      apache: ['remove: AddOutputFilterByType SUBSTITUTE text/event-stream'],
    },
  },
  heartbeats: {
    cost: 'Clients take a quiet stream for a dead one and reconnect again and again; proxies cut it as idle.',
    lines: {
      nginx: ['remove: sub_filter …;   (or take text/event-stream out of sub_filter_types)'],
      haproxy: ['remove: filter lua.…   (any filter that changes the body)'],
      varnish: ['remove: set beresp.filters = …;   (any filter that changes the body)'],
      caddy: ['remove: replace …   (any handler that changes the body)'],
      apache: ['remove: AddOutputFilterByType SUBSTITUTE text/event-stream'],
      alb: ['remove: the function that takes the stream apart and drops comments'],
    },
  },
  compression: {
    cost: 'A compressor collects bytes before it sends some, and keeps memory for each open stream. The hub asked for no-transform.',
    lines: {
      nginx: ['gzip off;   (or take text/event-stream out of gzip_types)'],
      haproxy: ['remove: compression type … text/event-stream'],
      varnish: ['remove: set beresp.do_gzip = true;   (for text/event-stream)'],
      caddy: ['encode { match { not header Content-Type text/event-stream* } }'],
      apache: ['SetEnvIf Request_URI "^/events" no-gzip', 'remove: AddOutputFilterByType DEFLATE text/event-stream'],
      cloudflare: ['a compression rule for /events: disable compression'],
      fastly: ['remove: set beresp.gzip = true;   (for text/event-stream)'],
    },
  },
  caching: {
    cost: 'A reader gets the stream of another reader: events from the past, and events that are not meant for it.',
    lines: {
      nginx: ['proxy_cache off;', 'remove: proxy_ignore_headers Cache-Control Vary;'],
      haproxy: ['remove: http-request cache-use …   (and http-response cache-store …)'],
      varnish: ['sub vcl_recv { if (req.url ~ "^/(events|stream|poll)") { return (pass); } }'],
      caddy: ['remove: cache   (for /events)'],
      apache: ['remove: CacheEnable … /events', 'remove: CacheIgnoreCacheControl On'],
      cloudflare: ['a cache rule for /events: bypass cache'],
      fastly: ['sub vcl_recv { if (req.url ~ "^/(events|stream|poll)") { return(pass); } }'],
    },
  },
  disconnect: {
    cost: 'No event is lost. The hub goes on sending to readers that have left, and they count towards its limits.',
    lines: {
      nginx: ['remove: proxy_ignore_client_abort on;'],
      haproxy: ['option abortonclose'],
      varnish: ['sub vcl_recv { if (req.url ~ "^/(events|stream)") { return (pipe); } }'],
      caddy: ['remove: flush_interval -1   (with it Caddy ignores that a reader left; streams need no flush_interval)'],
      apache: ['rejoin serve --heartbeat-ms 10000   (Apache notices when it has written twice)'],
    },
  },
  silence: {
    cost: 'Every quiet stream is cut, and its reader reconnects, again and again.',
    lines: timeouts(),
  },
  idle: {
    cost: 'Quiet streams are cut, and their readers reconnect, again and again.',
    lines: timeouts(),
  },
  cors: {
    cost: 'Pages of this origin cannot read the stream at all.',
    lines: {
      nginx: [
        'remove: proxy_hide_header Access-Control-Allow-Origin;',
        'remove: add_header Access-Control-Allow-Origin …;   (the hub sends its own)',
      ],
      haproxy: ['remove: http-response del-header Access-Control-Allow-Origin   (and set-header, add-header)'],
      varnish: ['remove: unset resp.http.Access-Control-Allow-Origin;   (and set)'],
      caddy: ['remove: header_down -Access-Control-Allow-Origin   (and header Access-Control-Allow-Origin …)'],
      apache: ['remove: Header unset Access-Control-Allow-Origin   (and Header set, Header add)'],
      cloudflare: ['remove: the transform rule that changes Access-Control-Allow-Origin'],
    },
  },
  'http-version': {
    cost: 'Over HTTP/1.1 a browser opens six connections to a host, for all tabs together; the seventh stream waits.',
    lines: {
      nginx: ['listen 443 ssl http2;   (from 1.25.1: http2 on;)'],
      haproxy: ['bind :443 ssl crt … alpn h2,http/1.1'],
      varnish: ['-p feature=+http2   (and alpn h2 in the TLS terminator)'],
      caddy: ['hub.example { reverse_proxy 127.0.0.1:4747 }   (a name instead of http://, and Caddy has h2)'],
      apache: ['Protocols h2 http/1.1'],
    },
  },
}

function timeouts(): Lines {
  return {
    nginx: ['proxy_read_timeout 75s;   (three heartbeats)'],
    haproxy: ['timeout server 75s', 'timeout client 75s'],
    varnish: ['-p idle_send_timeout=75   (and .between_bytes_timeout = 75s; of the backend)'],
    caddy: ['remove: read_timeout …   (in transport http)'],
    apache: ['ProxyPass "/events" "http://127.0.0.1:4747/events" timeout=75'],
    cloudflare: ['rejoin serve --heartbeat-ms 25000   (a heartbeat below the 100 s of Cloudflare)'],
    alb: ['idle_timeout.timeout_seconds = 75'],
    fastly: ['set bereq.between_bytes_timeout = 75s;'],
  }
}
