"""Publishes with nothing but Python's standard library, and signs its own token. HUB and SECRET are in the environment."""

import base64
import hashlib
import hmac
import json
import os
import time
import urllib.error
import urllib.request
import uuid


def token(subject, publish, secret, seconds=60):
    """A JWT, HS256, that may publish to these channels."""
    claims = {"sub": subject, "exp": int(time.time()) + seconds, "rejoin": {"publish": publish}}
    signed = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    signature = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64url(signature)}"


def base64url(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def publish(hub, channel, type, data, token, attempts=6):
    """Tries again under the same key, so that an answer that got lost is no second event."""
    body = json.dumps({"channel": channel, "type": type, "data": data}).encode()
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": str(uuid.uuid4()),
    }
    for attempt in range(attempts):
        try:
            request = urllib.request.Request(f"{hub}/publish", data=body, headers=headers)
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)["id"]
        except OSError as error:
            rejected = isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in (408, 425, 429)
            if rejected or attempt == attempts - 1:
                raise
            time.sleep(0.2 * 2**attempt)


if __name__ == "__main__":
    secret = os.environ["SECRET"]
    print(publish(os.environ["HUB"], "orders/42", "shipped", {"from": "Python"}, token("python", ["orders/*"], secret)))
