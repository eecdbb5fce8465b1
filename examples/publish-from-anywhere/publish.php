<?php
// Publishes with nothing but PHP itself, and signs its own token. HUB and SECRET are in the environment.
declare(strict_types=1);

function base64url(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
}

/** A JWT, HS256, that may publish to these channels. */
function token(string $subject, array $publish, string $secret, int $seconds = 60): string
{
    $header = base64url(json_encode(['alg' => 'HS256', 'typ' => 'JWT']));
    $claims = base64url(json_encode(['sub' => $subject, 'exp' => time() + $seconds, 'rejoin' => ['publish' => $publish]]));
    return "$header.$claims." . base64url(hash_hmac('sha256', "$header.$claims", $secret, true));
}

/** Tries again under the same key, so that an answer that got lost is no second event. */
function publish(string $hub, string $channel, string $type, mixed $data, string $token, int $attempts = 6): string
{
    $key = bin2hex(random_bytes(16));
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ["Authorization: Bearer $token", 'Content-Type: application/json', "Idempotency-Key: $key"],
        'content' => json_encode(['channel' => $channel, 'type' => $type, 'data' => $data]),
        'ignore_errors' => true,
        'timeout' => 30,
    ]]);
    for ($attempt = 0; $attempt < $attempts; $attempt++) {
        if ($attempt > 0) usleep(100_000 * 2 ** $attempt);
        $http_response_header = [];
        $body = @file_get_contents("$hub/publish", false, $context);
        $status = (int) (explode(' ', $http_response_header[0] ?? '')[1] ?? 0);
        if ($status >= 200 && $status < 300) return json_decode($body, true)['id'];
        if ($status >= 400 && $status < 500 && !in_array($status, [408, 425, 429])) break;
    }
    throw new RuntimeException("The hub did not take it: $status $body");
}

$token = token('php', ['orders/*'], getenv('SECRET'));
echo publish(getenv('HUB'), 'orders/42', 'shipped', ['from' => 'PHP'], $token), "\n";
