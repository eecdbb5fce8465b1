# Varnish in front of two hubs on one Redis: /etc/varnish/default.vcl. Start the hubs with --trust-proxy and access rules.
# hub1 and hub2 are the machines of the hubs. Varnish looks their names up once, when it loads this file.
vcl 4.1;

import directors;

# One good answer brings a hub back, two failures in a row take it away. So a hub that has just started is back before the other
# one is away. A hub that stops goes on for 2.5 s after its first failure.
probe readyz {
    .url = "/readyz";
    .interval = 1s;
    .timeout = 10s;                     # a busy hub is not away
    .window = 2;
    .threshold = 1;
    .initial = 1;
}

backend hub1 {
    .host = "hub1";
    .port = "4747";
    .probe = readyz;
    .connect_timeout = 2s;              # a machine that is gone does not answer; one with a full queue does after 1 s
    .between_bytes_timeout = 75s;       # three heartbeats of 25 s
    .first_byte_timeout = 75s;          # polls wait for up to 60 s
}

backend hub2 {
    .host = "hub2";
    .port = "4747";
    .probe = readyz;
    .connect_timeout = 2s;
    .between_bytes_timeout = 75s;
    .first_byte_timeout = 75s;
}

sub vcl_init {
    new hubs = directors.round_robin();
    hubs.add_backend(hub1);
    hubs.add_backend(hub2);
}

sub vcl_recv {
    set req.backend_hint = hubs.backend();
    # A stream that is passed on stays open to the hub when its reader leaves. A pipe ends with the reader.
    if (req.method == "GET" && req.url ~ "^/(events|stream)(/|\?|$)") {
        return (pipe);
    }
    return (pass);
}

# The other hub gets the request. Varnish itself repeats no publish whose body it has sent.
sub vcl_backend_error {
    if (bereq.retries == 0) {
        return (retry);
    }
}
