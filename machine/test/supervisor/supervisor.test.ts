import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { isSame, readProcess } from '@berth/os/process-identity.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { startPlain } from '../../src/supervisor/child.ts';
import { startAndWait, stopWithin } from '../../src/supervisor/readiness.ts';
import type { Service } from '../../src/supervisor/service.ts';
import { Supervisor } from '../../src/supervisor/supervisor.ts';
import type { SupervisorEvent } from '../../src/supervisor/supervisor.ts';

const DEADLINE_MS = 20_000;
const PAUSES = { firstMs: 20, mostMs: 80, settledMs: 60_000 };

let supervisors: Supervisor[] = [];
afterEach(async () => {
  await Promise.all(supervisors.map((supervisor) => supervisor.stop()));
  supervisors = [];
});

/** A real process that prints `ready` and then waits, unless the script does otherwise. */
function program(name: string, script: string, graceMs = 5_000): Service {
  return {
    name,
    start: async (onOutput, signal) => {
      let said = '';
      return startAndWait(
        {
          name,
          launch: (forward) =>
            startPlain({ command: ['sh', '-c', script], environment: {}, workingFolder: '/' }, (chunk) => {
              said += chunk.toString();
              forward(chunk);
            }),
          answers: async () => said.includes('ready'),
          answerDeadlineMs: 10_000,
          stop: stopWithin(graceMs),
        },
        onOutput,
        signal,
      );
    },
  };
}

const WAITING = 'echo ready; while :; do sleep 0.1; done';

interface Supervised {
  supervisor: Supervisor;
  events: SupervisorEvent[];
  next: (kind: SupervisorEvent['kind']) => Promise<SupervisorEvent>;
}

function supervise(services: Service[], onOutput: (chunk: Buffer) => void = () => undefined): Supervised {
  const events: SupervisorEvent[] = [];
  const emitter = new EventEmitter();
  const supervisor = new Supervisor({
    services,
    output: () => onOutput,
    pauses: PAUSES,
    onEvent: (event) => {
      events.push(event);
      emitter.emit(event.kind, event);
    },
  });
  supervisors.push(supervisor);
  const next = async (kind: SupervisorEvent['kind']): Promise<SupervisorEvent> => {
    const [event] = (await once(emitter, kind, { signal: AbortSignal.timeout(DEADLINE_MS) })) as [SupervisorEvent];
    return event;
  };
  return { supervisor, events, next };
}

function processOf(event: SupervisorEvent | undefined): ProcessIdentity {
  assert.equal(event?.kind, 'started');
  return event.process;
}

test('a service with all rights leaves no core file', async () => {
  const limit = Promise.withResolvers<string>();
  const child = await startPlain(
    { command: ['sh', '-c', 'ulimit -Hc; exec sleep 1000'], environment: {}, workingFolder: '/' },
    (chunk) => limit.resolve(chunk.toString()),
  );
  assert.equal(await limit.promise, '0\n');
  await child.stop('SIGTERM', 5_000);
});

test('services start in order and stop in reverse', async () => {
  const { supervisor, events } = supervise([program('first', WAITING), program('second', WAITING)]);
  await supervisor.start();
  await supervisor.stop();
  assert.deepEqual(
    events.map((event) => `${event.kind} ${event.service}`),
    ['started first', 'started second', 'stopped second', 'stopped first'],
  );
  for (const event of events.slice(0, 2)) assert.equal(await isSame(processOf(event)), false);
});

test('a service killed by kill -9 is restarted as a new process, the others are unchanged', async () => {
  const { supervisor, events, next } = supervise([program('steady', WAITING), program('victim', WAITING)]);
  await supervisor.start();
  const [steady, victim] = events.map(processOf) as [ProcessIdentity, ProcessIdentity];
  const restarted = next('started');
  process.kill(victim.pid, 'SIGKILL');
  const again = await restarted;
  assert.deepEqual(
    events.slice(2).map((event) => `${event.kind} ${event.service}`),
    ['ended victim', 'started victim'],
  );
  assert.equal((events[2] as { reason: string }).reason, 'signal SIGKILL');
  assert.notEqual(processOf(again).pid, victim.pid);
  assert.equal(await isSame(processOf(again)), true);
  assert.equal(await isSame(steady), true);
});

test('pauses between restarts grow to a limit while a service keeps exiting', async () => {
  // The service succeeds only at the first start, which creates the folder.
  const folder = await mkdtemp(join(tmpdir(), 'berth-supervisor-'));
  try {
    const { supervisor, events, next } = supervise([program('broken', `mkdir ${folder}/once || exit 7; ${WAITING}`)]);
    await supervisor.start();
    process.kill(processOf(events[0]).pid, 'SIGKILL');
    for (let failures = 0; failures < 4; failures += 1) await next('failed');

    const pauses = events
      .filter((event) => event.kind === 'ended' || event.kind === 'failed')
      .map((event) => event.pauseMs);
    assert.deepEqual(pauses, [20, 40, 80, 80, 80]);
    const failure = events.find((event) => event.kind === 'failed');
    assert.match(failure?.reason ?? '', /^broken did not start \(exit code 7\)/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a service that fails its first start fails the start with its last output; earlier ones stop', async () => {
  const { supervisor, events } = supervise([
    program('first', WAITING),
    program('second', 'echo no such table >&2; exit 3'),
  ]);
  await assert.rejects(supervisor.start(), /second did not start \(exit code 3\):\nno such table/);
  assert.deepEqual(
    events.map((event) => `${event.kind} ${event.service}`),
    ['started first', 'stopped first'],
  );
  assert.equal(await isSame(processOf(events[0])), false);
});

test('a service that exits before it is observed fails the start with its last output too', async () => {
  const gone: Service = {
    name: 'gone',
    start: (onOutput, signal) =>
      startAndWait(
        {
          name: 'gone',
          launch: async (forward) => {
            forward(Buffer.from('no such table\n'));
            throw new Error('exit code 3');
          },
          answers: async () => false,
          answerDeadlineMs: 10_000,
          stop: stopWithin(5_000),
        },
        onOutput,
        signal,
      ),
  };
  await assert.rejects(
    supervise([gone]).supervisor.start(),
    /^Error: gone did not start \(exit code 3\):\nno such table/,
  );
});

test('a service that ignores SIGTERM is killed after its grace period', async () => {
  const { supervisor, events } = supervise([program('stubborn', `trap '' TERM; ${WAITING}`, 200)]);
  await supervisor.start();
  await supervisor.stop();
  assert.equal(await isSame(processOf(events[0])), false);
});

test('a stop during the start leaves nothing running', async () => {
  let output = '';
  const said = Promise.withResolvers<void>();
  const { supervisor } = supervise([program('slow', 'echo pid $$; while :; do sleep 0.1; done')], (chunk) => {
    output += chunk.toString();
    said.resolve();
  });
  const rejected = assert.rejects(supervisor.start(), /no longer wanted/);
  await said.promise;
  const started = await readProcess(Number(/pid (\d+)/.exec(output)?.[1]));
  assert.ok(started !== null);
  await supervisor.stop();
  assert.equal(await isSame(started), false);
  await rejected;
});
