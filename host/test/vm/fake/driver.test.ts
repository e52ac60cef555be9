// The fake driver runs the real guest daemon, adopts it after a crash and leaves nothing behind.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { DriverError, type CreateVm, type DriverState, type RunningVm } from '../../../src/vm/driver.ts';
import { FakeDriver } from '../../../src/vm/fake/driver.ts';
import { findMarked } from '../../../src/vm/fake/find.ts';
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { deadlineOf, until } from '../../../../os/test/until.ts';
import { isSame, killProcess } from '@berth/os/process-identity.ts';

const instanceId = `test${process.pid}`;

interface Made {
  driver: FakeDriver;
  folder: string;
  saved: DriverState[];
  create: (changes?: Partial<CreateVm>) => Promise<RunningVm>;
}

async function prepared(t: TestContext, id = `sbx_${'a'.repeat(24)}`): Promise<Made> {
  const driver = new FakeDriver(instanceId);
  await driver.prepare();
  const root = await mkdtemp(join(tmpdir(), 'berth-fake-test-'));
  const folder = join(root, id);
  await mkdir(folder, { mode: 0o700 });
  t.after(async () => {
    await driver.destroy(folder);
    await driver.close();
    await rm(root, { recursive: true });
  });
  const saved: DriverState[] = [];
  const vm: CreateVm = {
    id,
    folder,
    spec: { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'a', sshAuthorizedKeys: [] },
    saveState: async (state) => {
      saved.push(structuredClone(state));
    },
    signal: AbortSignal.timeout(deadlineOf(60_000)),
  };
  return { driver, folder, saved, create: (changes) => driver.create({ ...vm, ...changes }) };
}

async function exec(vm: RunningVm, command: string): Promise<{ stdout: string; exitCode: number }> {
  const { port, address: host } = vm.guest;
  const text = await new Promise<string>((resolve, reject) => {
    const sent = request({ host, port, method: 'POST', path: '/exec', agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.once('end', () => resolve(body));
    });
    sent.once('error', reject);
    sent.end(JSON.stringify({ command, timeoutSeconds: 20 }));
  });
  return JSON.parse(text) as { stdout: string; exitCode: number };
}

test('a command runs as the unprivileged user berth with its own code folder and process namespace', async (t) => {
  const { create, folder } = await prepared(t);
  const vm = await create();
  const { stdout } = await exec(
    vm,
    'whoami; id -u; pwd; echo hi > file; ls -d /proc/[0-9]* | wc -l; grep -E "CapEff|NoNewPrivs" /proc/self/status',
  );
  const [name, uid, code, processes, capabilities, noNewPrivileges] = stdout.split('\n');
  assert.deepEqual(
    [name, code, capabilities?.split(/\s+/)[1], noNewPrivileges?.split(/\s+/)[1]],
    ['berth', '/code', '0000000000000000', '1'],
  );
  assert.ok(Number(uid) > 0);
  assert.ok(Number(processes) < 10);
  assert.equal(await readFile(join(folder, 'code', 'file'), 'utf8'), 'hi\n');
});

test('state is on disk before anything runs, and lets another driver take the VM over', async (t) => {
  const { create, saved, folder } = await prepared(t);
  let running: unknown[] = [];
  const vm = await create({
    saveState: async (state) => {
      saved.push(structuredClone(state));
      if (saved.length === 1) running = await findMarked((mark) => mark.folder === folder);
    },
  });
  assert.deepEqual(running, []);
  const last = saved.at(-1);
  assert.ok(last);
  const other = new FakeDriver(instanceId);
  const adopted = await other.recover(folder, last);
  assert.deepEqual(adopted, vm);
  assert.equal((await exec(vm, 'echo still here')).stdout, 'still here\n');

  const exited = other.exited(vm.process, new AbortController().signal);
  await killProcess(vm.process, 'SIGKILL');
  assert.match((await exited).reason, /has exited/);
  assert.equal(await other.recover(folder, last), null);
  assert.equal(await other.recover(folder, saved[0] ?? {}), null);
});

test('destroy ends everything inside, from any state, any number of times', async (t) => {
  const { create, driver, folder } = await prepared(t);
  await driver.destroy(folder);
  const vm = await create();
  await exec(vm, 'setsid sleep 1000 > /dev/null 2>&1 &');
  await driver.destroy(folder);
  assert.equal(await isSame(vm.process), false);
  assert.deepEqual(await findMarked((mark) => mark.folder === folder), []);
  await assert.rejects(exec(vm, 'true'));
  await driver.destroy(folder);
});

test('a VM sleeps while a process waits for a stopped child, and both go on after the wake', async (t) => {
  const { create, saved, driver, folder } = await prepared(t);
  const vm = await create();
  // As vfork does: the child has the memory of its parent, which waits until it ends.
  const forking = `import ctypes
c = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(65536)
top = ctypes.c_void_p(ctypes.addressof(stack) + 65536 - 64)
CLONE_VM, CLONE_VFORK, SIGCHLD, SIGSTOP = 0x100, 0x4000, 17, 19
c.clone(getattr(c, 'raise'), top, CLONE_VM | CLONE_VFORK | SIGCHLD, ctypes.c_void_p(SIGSTOP))
open('/code/done', 'w').close()`;
  await exec(vm, `cat >fork.py <<'END'\n${forking}\nEND\nsetsid python3 fork.py </dev/null >/dev/null 2>&1 &`);
  await until('the process waits', async () => {
    const { stdout } = await exec(vm, 'ps -eo stat,args | grep -c "^D.*fork.py"');
    return stdout.endsWith('1\n') ? true : null;
  });
  const snapshotFolder = join(folder, '..', 'snapshot');
  await mkdir(snapshotFolder);
  const signal = AbortSignal.timeout(deadlineOf(60_000));
  const spec = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
  const existing = { id: `sbx_${'a'.repeat(24)}`, folder, signal, snapshotFolder };
  const state = await driver.sleep({ ...existing, state: saved.at(-1) ?? {}, size: spec });
  const woken = await driver.wake({
    ...{ ...existing, state, egress: OPEN_EGRESS },
    saveState: async () => {},
    beforeContinue: async () => {},
  });
  await until('both went on', async () => ((await exec(woken, 'ls done')).exitCode === 0 ? true : null));
});

test('destroy cleans up an aborted create', async (t) => {
  const { create, driver, folder } = await prepared(t);
  for (const saves of [1, 2]) {
    let count = 0;
    const controller = new AbortController();
    await assert.rejects(
      create({
        signal: controller.signal,
        saveState: async () => {
          count += 1;
          if (count === saves) {
            controller.abort(new Error('given up'));
            throw new Error('given up');
          }
        },
      }),
      /given up/,
    );
    await driver.destroy(folder);
    assert.deepEqual(await findMarked((mark) => mark.folder === folder), []);
  }
});

test('only unrecorded VMs of the same installation are reaped', async (t) => {
  const [kept, lost] = [`sbx_${'b'.repeat(24)}`, `sbx_${'c'.repeat(24)}`];
  const one = await prepared(t, kept);
  const two = await prepared(t, lost);
  const [keptVm, lostVm] = [await one.create(), await two.create()];
  assert.deepEqual(await new FakeDriver('another').reapOrphans(new Set()), []);
  const reaped = await one.driver.reapOrphans(new Set([kept]));
  assert.ok(reaped.length > 0);
  assert.ok(reaped.every((line) => line.includes(lost)));
  assert.deepEqual([await isSame(keptVm.process), await isSame(lostVm.process)], [true, false]);
  assert.deepEqual(await one.driver.reapOrphans(new Set([kept])), []);
});

test('a guest daemon that does not start is reported with its output', async (t) => {
  const { create, folder } = await prepared(t);
  await mkdir(join(folder, 'run', 'berth', 'secret'), { recursive: true });
  await assert.rejects(
    create(),
    (error) => error instanceof DriverError && /it ended with .*it wrote: /s.test(error.message),
  );
});
