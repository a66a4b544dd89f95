<?php
// Counts words. A worker for Drover's exec, with nothing but PHP's command line.
//
//     command: [bin/plugins/exec, --name, words, --, php, plugins/exec/examples/php/worker.php]
//
// It reads nothing while it works, so a cancelled task ends by SIGTERM, which ends PHP; exec then starts a new one.

declare(strict_types=1);

// Warnings and notices go to standard error: standard output is for messages.
ini_set('display_errors', 'stderr');

function say(string $type, array $fields): void
{
    $flags = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES;
    fwrite(STDOUT, json_encode(['type' => $type] + $fields, $flags) . "\n");
}

function work(int $run, array $payload): void
{
    $text = $payload['text'] ?? null;
    if (!is_string($text)) {
        say('error', ['run' => $run, 'kind' => 'invalid_payload', 'message' => 'text is missing', 'permanent' => true]);
        return;
    }
    $words = preg_split('/\s+/u', $text, -1, PREG_SPLIT_NO_EMPTY);
    say('progress', ['run' => $run, 'done' => count($words), 'total' => count($words), 'note' => 'counted']);
    say('result', ['run' => $run, 'result' => ['words' => count($words), 'characters' => preg_match_all('/./us', $text)]]);
}

say('ready', ['v' => 1]);
while (($line = fgets(STDIN)) !== false) { // ends with the worker
    $message = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
    if ($message['type'] !== 'task') {
        continue;
    }
    try {
        work($message['run'], $message['payload']);
    } catch (Throwable $e) { // a failure of this task, which is tried again; the process goes on
        say('error', ['run' => $message['run'], 'message' => get_class($e) . ': ' . $e->getMessage()]);
    }
}
