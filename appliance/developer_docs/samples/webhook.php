<?php

// What a message says. Throws where it is not ours.
// $body as it came; names of headers in lower case.
function read_message(string $secret, string $body, array $headers): array
{
    $key = base64_decode(substr($secret, strlen('whsec_')), true);
    $signed = $headers['webhook-id'] . '.' . $headers['webhook-timestamp'] . '.' . $body;
    $wanted = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    $isOurs = false;
    foreach (explode(' ', $headers['webhook-signature']) as $given) {
        $isOurs = hash_equals($wanted, $given) || $isOurs;
    }
    if (!$isOurs || abs(time() - (int) $headers['webhook-timestamp']) > 300) {
        throw new RuntimeException('not a message of ours');
    }
    return json_decode($body, true, 512, JSON_THROW_ON_ERROR);
}
