// The main flow through the public HTTP API, on real microVMs: create, run commands, read, destroy;
// and responses to invalid calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  call,
  createSandbox,
  awakeSandbox,
  destroySandbox,
  errorOf,
  exec,
  getSandbox,
  listSandboxes,
  sleepSandbox,
  waitForStatus,
  wakeSandbox,
} from '../world/client.ts';
import { activityOf } from '../world/database.ts';
import { instanceForTests } from '../world/instance.ts';
import { until } from '../../os/test/until.ts';

const berth = instanceForTests('sandboxes');

test('a sandbox is created, runs commands as user berth in /code, and is destroyed', async () => {
  const sandbox = await awakeSandbox(berth, {
    name: 'first',
    endUserId: 'user 1',
    metadata: { plan: 'free', seats: 3, trial: true },
  });
  assert.equal(sandbox.name, 'first');
  assert.equal(sandbox.endUserId, 'user 1');
  assert.deepEqual(sandbox.metadata, { plan: 'free', seats: 3, trial: true });

  const facts = await exec(berth, sandbox.id, 'uname -s; id -un; pwd; nproc; sudo -n id -u; hostname');
  assert.equal(facts.exitCode, 0);
  const [kernel, user, folder, processors, root, hostname] = facts.stdout.trim().split('\n');
  assert.deepEqual(
    [kernel, user, folder, processors, root],
    ['Linux', 'berth', '/code', String(sandbox.allocated_vcpu), '0'],
  );
  assert.match(hostname ?? '', /^[a-z0-9-]+$/);

  assert.ok((await listSandboxes(berth)).some((other) => other.id === sandbox.id));
  assert.deepEqual(
    (await listSandboxes(berth, '?endUserId=user%201')).map((other) => other.id),
    [sandbox.id],
  );
  assert.deepEqual(await listSandboxes(berth, '?endUserId=user'), []);

  const gone = await destroySandbox(berth, sandbox.id);
  assert.equal(gone.status, 'deleted');
  assert.equal((await getSandbox(berth, sandbox.id)).status, 'deleted');
  assert.deepEqual(await destroySandbox(berth, sandbox.id), gone);
  assert.ok(!(await listSandboxes(berth)).some((other) => other.id === sandbox.id));
  const refused = errorOf(await call(berth, 'POST', `/v1/sandboxes/${sandbox.id}/exec`, { command: 'true' }), 409);
  assert.equal(refused.code, 'sandbox_state_conflict');
  assert.match(refused.message, /deleted.*Create another sandbox/);
});

test('a sandbox with the egress policy none reaches and resolves nothing, and the feed says so', async () => {
  const { id } = await awakeSandbox(berth, { egress: { mode: 'none' } });
  const look = 'getent ahostsv4 elsewhere.example; curl -s -m 20 http://9.9.9.9; echo $?';
  // 7: refused at once, not a timeout.
  assert.equal((await exec(berth, id, look)).stdout, '7\n');
  const entry = await until('the feed has refused attempts', async () => {
    const entries = await activityOf(berth.dataFolder, id);
    return entries.find(({ kind }) => kind === 'sandbox_egress_denied') ?? null;
  });
  assert.match(JSON.stringify(entry.details), /"elsewhere\.example"/);

  await sleepSandbox(berth, id);
  await wakeSandbox(berth, id);
  assert.equal((await exec(berth, id, look)).stdout, '7\n');
  const opened = await call(berth, 'PUT', `/v1/sandboxes/${id}/egress`, { mode: 'open' });
  assert.deepEqual([opened.status, (opened.body as { enforced: boolean }).enforced], [200, true]);
  await destroySandbox(berth, id);
});

test('the image has the tools that coding agents need', async () => {
  const sandbox = await awakeSandbox(berth);
  const tools =
    'git curl wget python3 pip gcc make rg jq sshd tmux bwrap sudo node npm rsync zip unzip sqlite3 vim less file tree';
  const found = await exec(
    berth,
    sandbox.id,
    `for tool in ${tools}; do command -v $tool >/dev/null || echo missing $tool; done; ` +
      'python3 -m venv --help >/dev/null; node --version',
  );
  assert.match(found.stdout, /^v24\.\d+\.\d+\n$/);
  assert.equal(found.exitCode, 0);
  await destroySandbox(berth, sandbox.id);
});

test('pip and npm install programs for the user, and the next command finds them', async () => {
  const sandbox = await awakeSandbox(berth);
  const wheel = `
import zipfile
with zipfile.ZipFile("/tmp/shout-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("shout.py", "def main(): print('SHOUT')")
    info = "shout-1.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: shout\\nVersion: 1\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nshout = shout:main\\n")
    wheel.writestr(info + "RECORD", "")
`;
  const packaged = '{"name":"whisper","version":"1.0.0","bin":"whisper.js"}';
  const made = await exec(
    berth,
    sandbox.id,
    `set -e; cat > /tmp/wheel.py <<'END'\n${wheel}\nEND\npython3 /tmp/wheel.py; ` +
      'pip install --quiet --no-index /tmp/shout-1-py3-none-any.whl; ' +
      `mkdir /tmp/whisper; echo '${packaged}' > /tmp/whisper/package.json; ` +
      'printf "#!/usr/bin/env node\\nconsole.log(\\"whisper\\")" > /tmp/whisper/whisper.js; ' +
      'npm install --global --silent --offline /tmp/whisper',
  );
  assert.equal(made.exitCode, 0, made.stderr + made.stdout);
  const used = await exec(berth, sandbox.id, 'shout; whisper; command -v shout; command -v whisper');
  const bin = '/home/berth/.local/bin';
  assert.equal(used.stdout, `SHOUT\nwhisper\n${bin}/shout\n${bin}/whisper\n`);
  await destroySandbox(berth, sandbox.id);
});

test('two sandboxes of one template share no identity', async () => {
  const [first, second] = await Promise.all([awakeSandbox(berth), awakeSandbox(berth)]);
  const command =
    'hostname; cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub; ' +
    'cat /proc/sys/kernel/random/uuid; python3 -c "import os; print(os.urandom(16).hex())"; ' +
    'node -p "crypto.randomUUID()"';
  const lines = async (id: string): Promise<string[]> => (await exec(berth, id, command)).stdout.trim().split('\n');
  const [one, other] = await Promise.all([lines(first.id), lines(second.id)]);
  assert.equal(one.length, 6);
  for (const [index, line] of one.entries()) assert.notEqual(line, other[index]);

  const clock = await exec(berth, first.id, 'date +%s');
  assert.ok(Math.abs(Number(clock.stdout) - Date.now() / 1_000) < 30, `the guest's clock says ${clock.stdout}`);
  await Promise.all([destroySandbox(berth, first.id), destroySandbox(berth, second.id)]);
});

test('the guest sees a bigger machine size', async () => {
  const sandbox = await awakeSandbox(berth, { machineSize: 'medium' });
  assert.deepEqual([sandbox.allocated_vcpu, sandbox.allocated_memory_gb, sandbox.allocated_disk_gb], [2, 4, 20]);
  const seen = await exec(
    berth,
    sandbox.id,
    "nproc; free -m | awk '/^Mem:/ {print $2}'; df -BG --output=size / | tail -1",
  );
  const [processors, memoryMib, disk] = seen.stdout
    .trim()
    .split('\n')
    .map((line) => Number.parseInt(line, 10));
  assert.equal(processors, 2);
  assert.ok((memoryMib ?? 0) > 3_600 && (memoryMib ?? 0) <= 4_096, `memory is ${memoryMib} MiB`);
  assert.ok((disk ?? 0) >= 19, `disk is ${disk} GiB`);
  await destroySandbox(berth, sandbox.id);
});

test('`Prefer: respond-async` returns at once with the true status', async () => {
  const created = await createSandbox(berth, {}, { headers: { prefer: 'respond-async' } });
  assert.equal(created.status, 'provisioning');
  const early = errorOf(await call(berth, 'POST', `/v1/sandboxes/${created.id}/exec`, { command: 'true' }), 409);
  assert.match(early.message, /provisioning/);
  await waitForStatus(berth, created.id, ['ready']);
  await destroySandbox(berth, created.id);
});

test('invalid calls are refused with the fault and the allowed values', async () => {
  const path = `/v1/orgs/${berth.orgId}/sandboxes`;
  const good = { agent: 'agent_one', projectId: berth.projectId };
  const cases: [unknown, number, RegExp][] = [
    [{ ...good, agent: 'codex' }, 400, /agent.*agent_one.*agent_two/],
    [{ ...good, projectId: 'prj_aaaaaaaaaaaaaaaaaaaaaaaa' }, 400, /prj_aaaaaaaaaaaaaaaaaaaaaaaa|projectId/],
    [{ agent: 'agent_one' }, 400, /projectId/],
    [{ ...good, colour: 'red' }, 400, /colour/],
    [{ ...good, machineSize: 'huge' }, 400, /machineSize.*small/],
    [{ ...good, repository: 'just-a-name' }, 400, /repository.*owner\/repo/],
    [{ ...good, mode: 'ephemeral', ttlSeconds: 60 }, 400, /mode|ttlSeconds/],
    [
      { ...good, metadata: Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`k${index}`, index])) },
      400,
      /24/,
    ],
    [{ ...good, metadata: { nested: { a: 1 } } }, 400, /metadata/],
  ];
  for (const [body, status, message] of cases) {
    const answer = await call(berth, 'POST', path, body);
    assert.match(errorOf(answer, status).message, message, JSON.stringify(body));
  }
  assert.equal(
    errorOf(await call(berth, 'GET', '/v1/sandboxes/sbx_aaaaaaaaaaaaaaaaaaaaaaaa'), 404).code,
    'sandbox_not_found',
  );
  assert.equal(errorOf(await call({ ...berth, token: 'brt_wrong' }, 'GET', '/v1/me'), 401).code, 'unauthenticated');
});

test('a sandbox whose QEMU is killed is failed with its reason, and can be destroyed', async () => {
  const sandbox = await awakeSandbox(berth);
  const pid = await berth.qemuPid(sandbox.id);
  process.kill(pid, 'SIGKILL');
  const failed = await waitForStatus(berth, sandbox.id, ['failed']);
  assert.ok((failed.statusReason?.message.length ?? 0) > 0);
  assert.equal(
    errorOf(await call(berth, 'POST', `/v1/sandboxes/${sandbox.id}/exec`, { command: 'true' }), 409).code,
    'sandbox_state_conflict',
  );
  assert.equal((await destroySandbox(berth, sandbox.id)).status, 'deleted');
});
