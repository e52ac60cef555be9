// The guest's SSH server: off in the image, on once a user may sign in, and on after every later
// boot. Controlled through the files of the supervisor (runit).
import { closeSync, constants, existsSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const SERVICE = '/etc/sv/ssh';
/** While this file exists, the supervisor does not start the service. */
const DOWN = `${SERVICE}/down`;
/** The supervisor reads single-letter commands from this FIFO. */
const CONTROL = `${SERVICE}/supervise/control`;
const PORT = 22;
/** State LISTEN in /proc/net/tcp. */
const LISTENING = '0A';
const POLL_INTERVAL_MS = 20;
/** Start takes a second under emulation. */
const START_DEADLINE_MS = 15_000;

/**
 * Switches the server on or off. Resolves once it listens, so that a caller who learns that the
 * guest is ready can connect. A server that does not start in time is only logged: the guest is
 * usable without it.
 */
export async function switchSshServer(on: boolean, signal: AbortSignal): Promise<void> {
  if (on === !existsSync(DOWN)) return;

  if (on) rmSync(DOWN);
  else writeFileSync(DOWN, '');

  tell(on ? 'u' : 'd');
  if (on) await untilListening(signal);
}

async function untilListening(signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while (!listens()) {
    signal.throwIfAborted();
    if (performance.now() > deadline) {
      console.error(`the ssh server does not listen after ${START_DEADLINE_MS / 1_000} s`);
      return;
    }
    await delay(POLL_INTERVAL_MS);
  }
}

function tell(letter: 'u' | 'd'): void {
  const control = openSync(CONTROL, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    writeSync(control, letter);
  } finally {
    closeSync(control);
  }
}

/** Reads the kernel's table: a connection would start an SSH handshake. */
function listens(): boolean {
  const port = `:${PORT.toString(16).padStart(4, '0').toUpperCase()}`;
  return readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .some((line) => {
      const [, local = '', , state] = line.trim().split(/\s+/);
      return local.endsWith(port) && state === LISTENING;
    });
}
