#!/bin/sh
# Publishes with curl, and signs its token with openssl. HUB and SECRET are in the environment.
set -eu

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

now=$(date +%s)
header=$(printf '{"alg":"HS256","typ":"JWT"}' | base64url)
claims=$(printf '{"sub":"shell","exp":%d,"rejoin":{"publish":["orders/*"]}}' $((now + 60)) | base64url)
signature=$(printf '%s.%s' "$header" "$claims" | openssl dgst -sha256 -hmac "$SECRET" -binary | base64url)

# Under the same key it can be tried again, and is published once.
curl --silent --show-error --fail-with-body --retry 5 --retry-all-errors \
  --header "Authorization: Bearer $header.$claims.$signature" \
  --header "Idempotency-Key: shell-$now-$$" \
  --data '{"from":"curl"}' \
  "$HUB/publish/orders/42?type=shipped"
