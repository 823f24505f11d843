<?php

// WEB_URL=… API_KEY=… CUIL=… php request.php contrato.pdf
$cuil = getenv('CUIL');
$pdf = file_get_contents($argv[1]);
$sha256 = hash('sha256', $pdf);

function call(string $path, ?string $body = null, array $headers = []): array
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

// 1. Upload the document. Repeated with the same key, it is the same document.
$document = call(
    '/documents?nombre=contrato.pdf',
    $pdf,
    ['Content-Type: application/pdf', "Idempotency-Key: doc-$sha256"],
);

// 2. Ask for the signature.
$order = [
    'documento' => ['documentoId' => $document['documentoId']],
    'firmantes' => [['cuil' => $cuil]],
];
$made = call(
    '/requests',
    json_encode($order, JSON_THROW_ON_ERROR),
    ['Content-Type: application/json', "Idempotency-Key: req-$sha256-$cuil"],
);

// 3. See how it stands.
$request = call("/requests/$made[procesoId]");
echo "$request[procesoId] $request[estado]\n";
