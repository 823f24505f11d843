<?php

// WEB_URL=… API_KEY=… CUIL=… php batch.php enero.pdf febrero.pdf
$cuil = getenv('CUIL');
$paths = array_slice($argv, 1);
$sha256 = hash('sha256', implode('', array_map('file_get_contents', $paths)));

function call(string $path, array|string|null $body = null, array $headers = []): array
{
    $curl = curl_init(getenv('WEB_URL') . '/api/integration' . $path);
    curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
    curl_setopt($curl, CURLOPT_HTTPHEADER, ['X-Api-Key: ' . getenv('API_KEY'), ...$headers]);
    if ($body !== null) {
        curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
    }
    $text = curl_exec($curl);
    if ($text === false) {
        throw new RuntimeException(curl_error($curl));
    }
    $answer = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) >= 400) {
        throw new RuntimeException("$answer[code]: $answer[detail] ($answer[requestId])");
    }
    return $answer;
}

// 1. Ask for all of them at once: a part for each PDF, in the order to be signed in.
$options = [
    'firmante' => ['cuil' => $cuil],
    'documentos' => array_map(fn () => new stdClass(), $paths),
];
$parts = ['options' => json_encode($options, JSON_THROW_ON_ERROR)];
foreach ($paths as $number => $path) {
    $parts["pdf$number"] = new CURLFile($path, 'application/pdf', basename($path));
}
$batch = call('/batches', $parts, ["Idempotency-Key: lote-$sha256-$cuil"]);

// 2. Wait until its documents are examined. A webhook tells it too: lote.listo.
while ($batch['estado'] === 'en_preparacion') {
    sleep(1);
    $batch = call("/batches/$batch[loteId]");
}
if ($batch['estado'] !== 'listo') {
    throw new RuntimeException(json_encode($batch['errors'] ?? [], JSON_THROW_ON_ERROR));
}

// 3. Open a session for it, whose token your page gets.
$session = call(
    '/sessions',
    json_encode(['loteId' => $batch['loteId']], JSON_THROW_ON_ERROR),
    ['Content-Type: application/json'],
);
echo "$session[loteId] $session[tokenSession]\n";
