// A program in a sandbox that detects changes to its VM's memory, processes, sockets or time: it
// counts, holds an open unlinked file, listens, and waits on connections. Owns the program and the
// parser of its reports.
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from '@berth/host/network/slots/registry.ts';
import { parseGuestCidr, slotOf } from '@berth/host/network/slots/slot.ts';
import { z } from 'zod';
import { exec, type Caller } from './client.ts';
import { machineIdOf } from './leftovers.ts';

/** Serves reports on this port. */
const ASK_PORT = 8_900;
/** Holds every connection to this port open and records its end. */
const HOLD_PORT = 8_901;
/** Period of the witness's timer, which runs while the VM runs, not while it sleeps. */
export const TICK_SECONDS = 0.05;

const PROGRAM = `
import hashlib, json, os, socket, threading, time
path = '/dev/shm/held'
held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.write(held, os.urandom(8 << 20))
os.unlink(path)
os.makedirs('/dev/shm/named', exist_ok=True)
open('/dev/shm/named/file', 'wb').write(os.urandom(1 << 20))
digest = lambda: hashlib.sha256(os.pread(held, 8 << 20, 0)).hexdigest()
first = digest()
state = {'startedSeconds': time.monotonic(), 'ticks': 0, 'connections': 0, 'ended': [], 'holding': 0}
def tick():
    due = time.monotonic()
    while True:
        due += ${TICK_SECONDS}
        time.sleep(max(0, due - time.monotonic()))
        state['ticks'] += 1
def wait_on(connection):
    state['holding'] += 1
    try:
        connection.recv(1)
        how = 'closed'
    except OSError as error:
        how = error.__class__.__name__
    state['holding'] -= 1
    state['ended'].append(how)
def hold():
    listener = socket.create_server(('', ${HOLD_PORT}))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=wait_on, args=(connection,), daemon=True).start()
threading.Thread(target=tick, daemon=True).start()
threading.Thread(target=hold, daemon=True).start()
listener = socket.create_server(('127.0.0.1', ${ASK_PORT}))
while True:
    connection, _ = listener.accept()
    state['connections'] += 1
    said = {**state, 'pid': os.getpid(), 'first': first, 'digest': digest()}
    said |= {'monotonicSeconds': time.monotonic(), 'unixSeconds': time.time()}
    connection.recv(4096)
    connection.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\n' + json.dumps(said).encode())
    connection.close()
`;

const witnessReport = z.object({
  pid: z.int(),
  /** On the same clock as monotonicSeconds. */
  startedSeconds: z.number(),
  ticks: z.int(),
  /** Number of reports served. */
  connections: z.int(),
  /** Outside connections that it holds, and the ends of those it held before. */
  holding: z.int(),
  ended: z.array(z.string()),
  /** SHA-256 of the unlinked file, as written and as it is now. */
  first: z.string(),
  digest: z.string(),
  monotonicSeconds: z.number(),
  unixSeconds: z.number(),
});
export type WitnessReport = z.infer<typeof witnessReport>;

/** Starts the witness and resolves with its first report. */
export async function startWitness(caller: Caller, sandboxId: string): Promise<WitnessReport> {
  const program = Buffer.from(PROGRAM).toString('base64');
  const started = await exec(
    caller,
    sandboxId,
    `echo ${program} | base64 -d > /code/witness.py && { setsid python3 /code/witness.py > /code/witness.log 2>&1 & }`,
  );
  assert.equal(started.exitCode, 0, JSON.stringify(started));
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await exec(caller, sandboxId, `curl -sS http://127.0.0.1:${ASK_PORT}/ || cat /code/witness.log`);
    if (answer.stdout.startsWith('{')) return witnessReport.parse(JSON.parse(answer.stdout));
    assert.ok(Date.now() < deadline, `the witness does not answer: ${JSON.stringify(answer)}`);
    await delay(200);
  }
}

/** Returns the current report. Throws when the witness does not respond. */
export async function queryWitness(caller: Caller, sandboxId: string): Promise<WitnessReport> {
  const { stdout, stderr } = await exec(caller, sandboxId, `curl -sS --max-time 20 http://127.0.0.1:${ASK_PORT}/`);
  assert.ok(stdout.startsWith('{'), `the witness of ${sandboxId} does not answer: ${stdout}${stderr}`);
  return witnessReport.parse(JSON.parse(stdout));
}

/** Number of the network slot of the sandbox's VM. */
export async function slotNumberOf(dataFolder: string, sandboxId: string): Promise<number> {
  const machineId = (await machineIdOf(dataFolder, sandboxId)) ?? sandboxId;
  const slot = [...(await readRegistry(DEFAULT_REGISTRY_FOLDER))].find(([, { vmId }]) => vmId === machineId)?.[0];
  assert.ok(slot !== undefined, `no network slot is claimed by ${sandboxId}`);
  return slot;
}

/** A connection from outside to the witness, through the network of the sandbox's VM. */
export async function connectToWitness(dataFolder: string, guestCidr: string, sandboxId: string): Promise<Socket> {
  const { address } = slotOf(parseGuestCidr(guestCidr), await slotNumberOf(dataFolder, sandboxId));
  assert.notEqual(HOLD_PORT, GUEST_PORT);
  const socket = connect(HOLD_PORT, address);
  // The connection ends with the VM in any way; the other end reports how.
  socket.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no connection to ${address} within 20 s`)));
  });
  socket.setTimeout(0);
  return socket;
}
