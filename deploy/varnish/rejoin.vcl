# Varnish in front of a hub: /etc/varnish/default.vcl. Start the hub with --trust-proxy.
vcl 4.1;

backend hub {
    .host = "127.0.0.1";
    .port = "4747";
    .between_bytes_timeout = 75s;       # three heartbeats of 25 s
    .first_byte_timeout = 75s;          # polls wait for up to 60 s
}

sub vcl_recv {
    # A stream that is passed on stays open to the hub when its reader leaves. A pipe ends with the reader.
    if (req.method == "GET" && req.url ~ "^/(events|stream)(/|\?|$)") {
        return (pipe);
    }
    return (pass);
}
