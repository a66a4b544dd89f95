<?php
// Submits a task and prints its result, with what PHP has by itself: php submit.php QUEUE JSON [SECONDS]
// DROVER_ADDRESS is unix:PATH or https://HOST:PORT; the latter takes DROVER_TOKEN_FILE, and DROVER_CA_FILE for a certificate of your own.

/** Calls a method of the TaskService and returns its answer. */
function drover(string $method, array $request, float $seconds = 30): array
{
    $address = getenv('DROVER_ADDRESS') ?: 'unix:var/drover.sock';
    $headers = ['Host: drover', 'Content-Type: application/json', 'Connection: close'];
    if (str_starts_with($address, 'unix:')) {
        $socket = stream_socket_client('unix://' . substr($address, 5), $code, $error, 5);
    } else {
        $headers[] = 'Authorization: Bearer ' . trim(file_get_contents(getenv('DROVER_TOKEN_FILE')));
        $tls = getenv('DROVER_CA_FILE') ? ['cafile' => getenv('DROVER_CA_FILE')] : [];
        $socket = stream_socket_client(preg_replace('/^https/', 'tls', $address), $code, $error, 5,
            STREAM_CLIENT_CONNECT, stream_context_create(['ssl' => $tls]));
    }
    if (!$socket) {
        throw new RuntimeException("no manager at $address: $error");
    }
    $body = json_encode($request);
    $headers[] = 'Content-Length: ' . strlen($body);
    stream_set_timeout($socket, (int) ceil($seconds) + 5);
    fwrite($socket, "POST /drover.api.v1.TaskService/$method HTTP/1.0\r\n" . implode("\r\n", $headers) . "\r\n\r\n$body");
    [$head, $text] = explode("\r\n\r\n", stream_get_contents($socket), 2) + [1 => ''];
    $answer = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
    if (!preg_match('/^HTTP\/1.[01] 200 /', $head)) {
        throw new RuntimeException("$method: {$answer['code']}: {$answer['message']}");
    }
    return $answer;
}

[, $queue, $payload] = $argv;
$seconds = (float) ($argv[3] ?? 5);
try {
    $id = drover('Submit', ['queue' => $queue, 'payload' => base64_encode($payload)])['id'];
    $answer = drover('Wait', ['id' => $id, 'timeoutMs' => (int) ($seconds * 1000)], $seconds);
} catch (Exception $e) {
    fwrite(STDERR, $e->getMessage() . "\n");
    exit(1);
}
$task = $answer['task'];
if (!($answer['ended'] ?? false)) {
    fwrite(STDERR, "$id is not done after $seconds s\n");
    exit(4);
}
if ($task['state'] !== 'STATE_COMPLETED') {
    fwrite(STDERR, "$id: {$task['state']}: " . ($task['fault']['message'] ?? '') . "\n");
    exit(1);
}
echo base64_decode($task['result']), "\n";
