// SSH into sandboxes with Debian's client, through `berth ssh` and its configuration: keys, files,
// ports, git, host keys and refusals.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { SYSTEM_PATH } from '@berth/os/system-path.ts';
import { PseudoTerminal } from '../../os/test/pseudo-terminal.ts';
import { freePort } from '../../protocol/test/free-port.ts';
import {
  awakeSandbox,
  call,
  createProject,
  createSandbox,
  destroySandbox,
  errorOf,
  exec,
  getSandbox,
  sleepSandbox,
  waitForStatus,
  wakeSandbox,
} from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { BERTH, SshClient, type Ended } from '../world/ssh-client.ts';
import { until } from '../../os/test/until.ts';

const KINDS = [
  ['ed25519', 'ed25519', undefined],
  ['ecdsa', 'ecdsa', '521'],
  ['rsa', 'rsa', '3072'],
] as const;

let berth: Instance;
let client: SshClient;
/** A sandbox per kind of key; most tests use the first. */
const sandboxes = new Map<string, string>();
let id: string;

before(async () => {
  berth = await startInstance('ssh');
  client = await SshClient.make(berth);
  for (const [name, type, bits] of KINDS) {
    const sshPublicKey = await client.makeKey(name, type, bits);
    sandboxes.set(name, (await awakeSandbox(berth, { sshPublicKey })).id);
  }
  await client.makeKey('stranger', 'ed25519');
  id = idOf('ed25519');
});

after(async () => {
  await client?.remove();
  await berth?.end();
});

function idOf(key: string): string {
  const found = sandboxes.get(key);
  assert.ok(found !== undefined, key);
  return found;
}

/** `berth ssh` with one key. */
const berthSsh = (sandboxId: string, key: string, ...args: string[]): Promise<Ended> =>
  client.run(BERTH, ['ssh', sandboxId, ...client.withKey(key), ...args]);

const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function output(command: string, sandboxId = id): Promise<string> {
  const { exitCode, stdout, stderr } = await exec(berth, sandboxId, command);
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}

for (const [name] of KINDS) {
  test(`the holder of the ${name} key logs in as berth at once, and exit codes are returned`, async () => {
    const { code, stdout, stderr } = await berthSsh(idOf(name), name, 'id -un; pwd; echo to stderr >&2; exit 5');
    assert.deepEqual([code, stdout, stderr], [5, 'berth\n/home/berth\n', 'to stderr\n']);
    assert.equal((await berthSsh(idOf(name), name, 'true')).code, 0);
    assert.equal((await berthSsh(idOf(name), name, 'kill -9 $$')).code, 255);
    // Through the documented configuration.
    assert.equal(
      (await client.run('ssh', [...client.withKey(name), idOf(name), 'cat; exit 3'], { input: 'grüße' })).stdout,
      'grüße',
    );
  });
}

test('PATH is the same for commands of API and ssh, and in login shells; ssh begins in the home folder', async () => {
  const path = `/home/berth/.local/bin:${SYSTEM_PATH}`;
  const command = 'pwd; echo "$PATH"; bash -lc \'echo "$PATH"\'';
  const { stdout } = await berthSsh(id, 'ed25519', command);
  assert.equal(stdout, `/home/berth\n${path}\n${path}\n`);
  assert.equal(await output(command), `/code\n${path}\n${path}`);
});

test('another key, another user and a password are refused, also beside the accepted key', async () => {
  for (const [key, user] of [
    ['stranger', 'berth'],
    ['ecdsa', 'berth'],
    ['ed25519', 'root'],
  ] as const) {
    const { code, stderr } = await client.run('ssh', [...client.withKey(key), '-l', user, id, 'id']);
    assert.deepEqual([code, /Permission denied \(publickey\)/.test(stderr)], [255, true], stderr);
  }
  assert.equal((await berthSsh(id, 'stranger', 'id')).code, 255);
});

test('an ssh shell has a terminal with its size, Ctrl-C and an exit code', async () => {
  const terminal = new PseudoTerminal(BERTH, ['ssh', id, ...client.withKey('ed25519')], client.environment);
  await terminal.shows(/\$ $/);
  await terminal.resize(33, 101);
  // The new size may not have arrived yet. The program is now in the foreground and reports it.
  terminal.type(
    `sh -c 'until [ "$(stty size)" = "33 101" ]; do sleep 0.1; done; echo "<""told>"; exec sleep 100000'\r`,
  );
  await terminal.shows('<told>');
  const from = terminal.text.length;
  terminal.type('\x03');
  await terminal.shows(/\$ $/, from);
  terminal.type('exit $((7 + $?))\r');
  assert.equal(await terminal.ended(), 137);
});

test('scp copies files both ways unchanged', async () => {
  const sent = randomBytes(12_000_000);
  await writeFile(client.keyFile('sent'), sent);
  const out = await client.run('scp', ['-q', ...client.withKey('ed25519'), 'sent', `${id}:/code/arrived`]);
  assert.deepEqual([out.code, out.stderr], [0, '']);
  assert.equal(await output('sha256sum < arrived'), `${sum(sent)}  -`);
  await output('head -c 9000000 /dev/urandom > made');
  const back = await client.run('scp', ['-q', ...client.withKey('ed25519'), `${id}:/code/made`, 'fetched']);
  assert.deepEqual([back.code, back.stderr], [0, '']);
  assert.equal(`${sum(await readFile(client.keyFile('fetched')))}  -`, await output('sha256sum < made'));
});

test('ssh -L forwards to a port of the sandbox', async () => {
  await output(
    'mkdir -p served && echo "from inside" > served/file && ' +
      '(setsid python3 -m http.server -b 127.0.0.1 -d served 8123 >/dev/null 2>&1 &)',
  );
  const port = await freePort();
  const forwarding = client.start(BERTH, [
    'ssh',
    id,
    ...client.withKey('ed25519'),
    '-N',
    '-L',
    `127.0.0.1:${port}:127.0.0.1:8123`,
  ]);
  const get = async (): Promise<string | null> => {
    try {
      return await (await fetch(`http://127.0.0.1:${port}/file`)).text();
    } catch {
      return null;
    }
  };
  assert.equal(await until(() => `the port answers; ${forwarding.stderr}`, get), 'from inside\n');
  const many = await Promise.all(Array.from({ length: 20 }, get));
  assert.deepEqual(new Set(many), new Set(['from inside\n']));
  forwarding.end();
  await forwarding.ended;
  assert.equal(await get(), null);
});

test('ssh -R forwards from the sandbox to a port of the client', async () => {
  const server = createServer((_request, response) => void response.end('from outside'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const forwarding = client.start(BERTH, [
    'ssh',
    id,
    ...client.withKey('ed25519'),
    '-N',
    '-R',
    `9123:127.0.0.1:${port}`,
  ]);
  const said = await until(
    () => `the port answers inside; ${forwarding.stderr}`,
    async () => {
      const { exitCode, stdout } = await exec(berth, id, 'curl -s http://127.0.0.1:9123/');
      return exitCode === 0 ? stdout : null;
    },
  );
  assert.equal(said, 'from outside');
  forwarding.end();
  await forwarding.ended;
  server.close();
});

test('git pushes into a repository in the sandbox and clones from it', async () => {
  await output('git init -q --bare -b main /code/repo.git');
  const env = { GIT_SSH_COMMAND: ['ssh', ...client.withKey('ed25519')].join(' ') };
  const work = join(client.folder, 'work');
  await mkdir(work);
  const git = async (cwd: string, ...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await client.run(
      'git',
      ['-c', 'user.name=Tests', '-c', 'user.email=tests@example.test', ...args],
      {
        cwd,
        env,
      },
    );
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await git(work, 'init', '-q', '-b', 'main');
  await writeFile(join(work, 'large'), randomBytes(3_000_000));
  await git(work, 'add', '.');
  await git(work, 'commit', '-q', '-m', 'first');
  await git(work, 'push', '-q', `${id}:/code/repo.git`, 'main');
  const head = await git(work, 'rev-parse', 'HEAD');
  assert.equal(await output('git -C /code/repo.git rev-parse main'), head);
  await git(client.folder, 'clone', '-q', `${id}:/code/repo.git`, 'cloned');
  assert.equal(await git(join(client.folder, 'cloned'), 'rev-parse', 'HEAD'), head);
  assert.ok((await readFile(join(client.folder, 'cloned/large'))).equals(await readFile(join(work, 'large'))));
});

test('each sandbox has its own host key, known before the first connection and kept through sleep', async () => {
  const keyOf = async (sandboxId: string): Promise<string> =>
    (await client.run(BERTH, ['known-host', sandboxId])).stdout;
  const [key, other] = [await keyOf(id), await keyOf(idOf('rsa'))];
  const material = (line: string): string => line.trim().split(' ').slice(1).join(' ');
  assert.match(key, new RegExp(`^${id} ssh-ed25519 \\S+\\n$`));
  assert.notEqual(material(key), material(other));
  assert.equal(await output('cut -d" " -f1,2 /etc/ssh/ssh_host_ed25519_key.pub'), material(key));

  await sleepSandbox(berth, id);
  assert.equal(await keyOf(id), key);
  await wakeSandbox(berth, id);
  assert.equal(await keyOf(id), key);
  assert.deepEqual(await berthSsh(id, 'ed25519', 'echo awake'), { code: 0, stdout: 'awake\n', stderr: '' });
  // Woken from its disk: the VM died, and a new one replaced it.
  process.kill(await berth.qemuPid(id), 'SIGKILL');
  await waitForStatus(berth, id, ['failed']);
  assert.equal((await wakeSandbox(berth, id)).lastWake?.from, 'disk');
  assert.deepEqual(await berthSsh(id, 'ed25519', 'echo booted'), { code: 0, stdout: 'booted\n', stderr: '' });

  await writeFile(client.keyFile('wrong_hosts'), `${id} ${material(other)}\n`);
  const { code, stderr } = await client.run('ssh', [
    ...['-o', 'KnownHostsCommand=none', '-o', `UserKnownHostsFile=${client.keyFile('wrong_hosts')}`],
    ...client.withKey('ed25519'),
    id,
    'id',
  ]);
  assert.deepEqual([code, /Host key verification failed/.test(stderr)], [255, true], stderr);
});

test('ssh names a missing key, a sleeping sandbox, a missing sandbox and a wrong API key', async () => {
  const without = await awakeSandbox(berth);
  const plain = await berthSsh(without.id, 'ed25519', 'id');
  assert.deepEqual([plain.code, plain.stdout], [255, '']);
  assert.match(plain.stderr, /the sandbox was created without an SSH key\n.*berth shell/);
  assert.match(
    (await client.run(BERTH, ['tunnel', without.id])).stderr,
    /nothing listens on port 22 of the sandbox \(port_refused\)/,
  );

  await sleepSandbox(berth, idOf('rsa'));
  const asleep = await berthSsh(idOf('rsa'), 'rsa', 'id');
  assert.equal(asleep.code, 255);
  assert.match(
    asleep.stderr,
    /berth: the sandbox is stopped \(.*\); to open a connection, it must be running or ready \(sandbox_state_conflict\)/,
  );

  const missing = `sbx_${'a'.repeat(24)}`;
  assert.match(
    (await berthSsh(missing, 'ed25519', 'id')).stderr,
    /^berth: .* \(sandbox_not_found\)\n {2}use the id of .*\n$/,
  );
  const wrong = await client.run(BERTH, ['ssh', id, 'id'], { env: { BERTH_API_KEY: `${berth.token.slice(0, -1)}x` } });
  assert.deepEqual([wrong.code, wrong.stderr.includes('(unauthenticated)\n')], [255, true], wrong.stderr);
});

test('ssh wakes a stopped sandbox of a project that wakes on use', async () => {
  const { id: projectId } = await createProject(berth, { name: 'wakes', wakeOnUse: true });
  const sshPublicKey = await readFile(`${client.keyFile('ed25519')}.pub`, 'utf8');
  const sandbox = await awakeSandbox(berth, { projectId, sshPublicKey });
  await sleepSandbox(berth, sandbox.id);
  assert.deepEqual(await berthSsh(sandbox.id, 'ed25519', 'echo woken'), { code: 0, stdout: 'woken\n', stderr: '' });
  await destroySandbox(berth, sandbox.id);
});

test('a private key in place of the public one is refused with a warning, and stored nowhere', async () => {
  const secret = await readFile(client.keyFile('stranger'), 'utf8');
  const body = { agent: 'agent_one', projectId: berth.projectId, sshPublicKey: secret };
  const { message } = errorOf(await call(berth, 'POST', `/v1/orgs/${berth.orgId}/sandboxes`, body), 400);
  assert.match(message, /sshPublicKey is a private key and was rejected\. .*replace it wherever it is used/);
  const [, piece = ''] = secret.split('\n');
  assert.ok(!message.includes(piece));
  for (const log of ['api', 'host', 'database'])
    assert.ok(!(await readFile(join(berth.dataFolder, 'log', `${log}.log`), 'utf8')).includes(piece), log);
});

test('a silent ssh connection or terminal keeps a sandbox awake until it closes', async () => {
  const { id: projectId } = await createProject(berth, { name: 'idles', defaultIdleMinutes: 1 });
  const sshPublicKey = await readFile(`${client.keyFile('ed25519')}.pub`, 'utf8');
  const connected = await awakeSandbox(berth, { projectId, sshPublicKey });
  const watched = await awakeSandbox(berth, { projectId });
  const session = client.start(BERTH, ['ssh', connected.id, ...client.withKey('ed25519'), 'echo here; sleep 100000']);
  const terminal = new PseudoTerminal(BERTH, ['shell', watched.id], client.environment);
  await until(
    () => `the session is open; ${session.stderr}`,
    () => Promise.resolve(session.stdout === 'here\n' ? true : null),
  );
  await terminal.shows('$ ');
  // Used after both are open.
  const idle = await createSandbox(berth, { projectId });
  await waitForStatus(berth, idle.id, ['stopped'], 240_000);
  for (const sandbox of [connected, watched]) assert.equal((await getSandbox(berth, sandbox.id)).status, 'ready');
  assert.equal(session.over, false);
  session.end();
  terminal.type('exit\r');
  await Promise.all([session.ended, terminal.ended()]);
  for (const sandbox of [connected, watched]) {
    const slept = await waitForStatus(berth, sandbox.id, ['stopped'], 240_000);
    assert.equal(slept.wakesFrom, 'snapshot');
  }
});
