// The main story of each capability, told in order on one service with one real VM: the only VM of
// `npm test`. Further stories are `*.long.test.ts` beside it and in the other folders.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { readProcessOutput, startProcess } from '@berth/contract/commands/processes.ts';
import { fileContent } from '@berth/contract/files/files.ts';
import { createFileLink } from '@berth/contract/files/links.ts';
import { watchFiles } from '@berth/contract/files/watch.ts';
import { getEndUserUsage } from '@berth/contract/usage/usage.ts';
import type { z } from 'zod';
import { startGitServerIn, type NamespaceGitServer } from '../../guest/test/clones/git-server-process.ts';
import { startUplink, type Uplink } from '../../host/test/network/uplink.ts';
import { enterPrivateHost } from '../../host/test/vm/private-host.ts';
import { PseudoTerminal } from '../../os/test/pseudo-terminal.ts';
import { until } from '../../os/test/until.ts';
import { Conversation } from '../agents/conversation.ts';
import { PreviewClient, publicLink } from '../previews/client.ts';
import {
  call,
  createSandbox,
  destroySandbox,
  errorOf,
  exec,
  getSandbox,
  resizeSandbox,
  sleepSandbox,
  waitForStatus,
  wakeSandbox,
} from '../world/client.ts';
import { leftoversOf } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';
import { BERTH, SshClient } from '../world/ssh-client.ts';
import { queryWitness, startWitness } from '../world/witness.ts';

enterPrivateHost();

const GIT_PORT = 3_000;
const APP_PORT = 8_000;
const KEY = 'story';

let uplink: Uplink;
let git: NamespaceGitServer;
let gitUrl: string;
let parts: Parts;
let client: SshClient;
/** The sandbox of the story. */
let id: string;
/** Its process. */
let processPath: string;

before(async () => {
  uplink = await startUplink();
  const address = uplink.internet[0]?.address ?? '';
  gitUrl = `http://${address}:${GIT_PORT}`;
  git = await startGitServerIn(uplink.namespacePath, address, GIT_PORT);
  parts = await Parts.start({ environment: { BERTH_GIT_BASE_URL: gitUrl, BERTH_SCRIPTED_AGENT: '1' } });
  client = await SshClient.make(parts.caller);
});

after(async () => {
  try {
    await client?.remove();
    await parts?.stop();
    if (parts !== undefined) assert.deepEqual(await leftoversOf(parts.dataFolder), []);
    await parts?.remove();
  } finally {
    // A test file with a running child process does not exit.
    await git?.stop();
    await uplink?.stop();
  }
});

/** All output of the process so far, once there is some. */
async function processOutput(): Promise<z.infer<typeof readProcessOutput.response.body>> {
  const { body } = await call(parts.caller, 'GET', `${processPath}/output`, undefined, {
    headers: { prefer: 'wait=20' },
  });
  return readProcessOutput.response.body.parse(body);
}

/** Output of a command that succeeds. */
async function run(command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await exec(parts.caller, id, command);
  assert.equal(exitCode, 0, stderr);
  return stdout;
}

test('a sandbox is created with the files of its repository', async () => {
  const { commits } = await git.order({ do: 'look' });
  const sshPublicKey = await client.makeKey(KEY, 'ed25519');
  ({ id } = await createSandbox(parts.caller, { repository: 'acme/web', endUserId: 'user 1', sshPublicKey }));
  const { clone, endUserId } = await waitForStatus(parts.caller, id, ['ready']);
  assert.deepEqual([clone, endUserId], [{ status: 'cloned', reason: null }, 'user 1'], parts.log.slice(-3_000));
  assert.equal(await run('git rev-parse HEAD && git status --porcelain && stat -c %U .'), `${commits.main}\nberth\n`);
});

test('a command runs as the user berth in /code and returns output and exit code', async () => {
  const result = await exec(parts.caller, id, 'id -un; pwd; uname -s; echo err >&2; exit 7');
  const stdout = 'berth\n/code\nLinux\n';
  assert.deepEqual(result, { exitCode: 7, stdout, stderr: 'err\n', truncated: false, timedOut: false });
});

test('a file is written and read unchanged', async () => {
  const content = randomBytes(30_000).toString('base64');
  const body = { path: 'made/bytes', content, encoding: 'base64' };
  assert.equal((await call(parts.caller, 'PUT', `/v1/sandboxes/${id}/file`, body)).status, 200);
  const read = await call(parts.caller, 'GET', `/v1/sandboxes/${id}/file?path=made/bytes`);
  assert.equal(fileContent.parse(read.body).content, content);
  assert.equal(await run('base64 -w 0 made/bytes'), content);
});

test('a link stores a file, whose folder reports the change, and sends a part of it', async () => {
  const changes = async (cursor?: string): Promise<z.infer<typeof watchFiles.response.body>> => {
    const query = new URLSearchParams({ path: 'made', ...(cursor === undefined ? {} : { cursor }) }).toString();
    const path = `/v1/sandboxes/${id}/files/changes?${query}`;
    const { status, body } = await call(parts.caller, 'GET', path, undefined, { headers: { prefer: 'wait=20' } });
    assert.equal(status, 200, JSON.stringify(body));
    return watchFiles.response.body.parse(body);
  };
  const link = async (action: 'read' | 'write'): Promise<string> => {
    const { body } = await call(parts.caller, 'POST', `/v1/sandboxes/${id}/files/links`, {
      path: 'made/shared',
      action,
    });
    return createFileLink.response.body.parse(body).link.url;
  };
  const { cursor } = await changes();
  const content = randomBytes(5_000);
  const stored = await fetch(await link('write'), { method: 'PUT', body: content });
  assert.equal(stored.status, 200, await stored.text());
  const { changes: found, reset } = await changes(cursor);
  assert.deepEqual([found.map(({ path }) => path).includes('/code/made/shared'), reset], [true, false]);
  const part = await fetch(await link('read'), { headers: { range: 'bytes=100-1099' } });
  assert.equal(part.status, 206);
  assert.deepEqual(Buffer.from(await part.arrayBuffer()), content.subarray(100, 1_100));
});

test('a variable is in the environment of new commands and in no file', async () => {
  const body = { variables: { STORY_TOKEN: 'told-once' } };
  assert.equal((await call(parts.caller, 'PUT', `/v1/sandboxes/${id}/variables`, body)).status, 200);
  assert.equal(await run('printenv STORY_TOKEN'), 'told-once\n');
  // The search finds what is there: its own file.
  const search = 'sudo grep -rlsF told-once /etc /run /home /code /tmp /var';
  assert.equal(await run(`echo told-once >/tmp/seen; ${search}; rm /tmp/seen`), '/tmp/seen\n');
});

test('`berth shell` is a terminal, and returns the exit code of the shell', async () => {
  const { PATH, HOME } = process.env;
  const { url, token } = parts.caller;
  const terminal = new PseudoTerminal(BERTH, ['shell', id], { PATH, HOME, BERTH_URL: url, BERTH_API_KEY: token });
  try {
    await terminal.shows(/\$ $/);
    // The mark differs from the typed text, and so from its echo.
    terminal.type('tty; echo "<""done>"\r');
    await terminal.shows(/\/dev\/pts\/\d+\r\n<done>/);
    terminal.type('exit 42\r');
    assert.equal(await terminal.ended(), 42);
  } finally {
    terminal.hangUp();
  }
});

test('`berth ssh` logs in with the key of the sandbox', async () => {
  const { code, stdout, stderr } = await client.run(BERTH, ['ssh', id, ...client.withKey(KEY), 'id -un; exit 5']);
  assert.deepEqual([code, stdout], [5, 'berth\n'], stderr);
});

test('a port opens by a preview link, and no longer once the link is revoked', async () => {
  await run(`mkdir -p ~/site && echo served > ~/site/index.html
    cd ~/site && (setsid python3 -m http.server ${APP_PORT} >/dev/null 2>&1 &)
    until curl -s localhost:${APP_PORT} >/dev/null; do sleep 0.1; done`);
  const link = await publicLink(parts.caller, id, APP_PORT);
  const visitor = new PreviewClient(parts.caller, link.url);
  const { status, body } = await visitor.byLink('/');
  assert.deepEqual([status, body.toString()], [200, 'served\n']);
  assert.equal((await call(parts.caller, 'DELETE', `/v1/sandboxes/${id}/previews/${link.id}`)).status, 200);
  await until('the link is refused', async () => ((await visitor.ask('/')).status === 410 ? true : null));
  visitor.leave();
});

test('a process outlives its request, and its output is read once', async () => {
  const body = { command: 'echo before; read line; echo "$line"; exit 7', stdin: true };
  const started = await call(parts.caller, 'POST', `/v1/sandboxes/${id}/processes`, body);
  const { process } = startProcess.response.body.parse(started.body);
  processPath = `/v1/sandboxes/${id}/processes/${process.id}`;
  const { chunks, cursor } = await processOutput();
  assert.deepEqual([chunks.map(({ data }) => data), cursor], [['before\n'], '7.0']);
});

test('an agent session takes a message and replies', async () => {
  const conversation = await Conversation.create(parts.caller, id);
  const turnId = await conversation.deliver('say hello', 'story-hello');
  assert.equal((await conversation.ended(turnId)).state, 'completed');
  await conversation.readOn();
  assert.deepEqual(
    conversation.read.map((reply) => [reply.turnId, reply.text]),
    [[turnId, 'hello']],
  );
});

test('an egress policy takes effect in the running sandbox', async () => {
  const reach = `curl -s -o /dev/null -m 60 ${gitUrl}; echo $?`;
  assert.equal(await run(reach), '0\n');
  assert.equal((await call(parts.caller, 'PUT', `/v1/sandboxes/${id}/egress`, { mode: 'none' })).status, 200);
  // 7: refused at once, not a timeout.
  assert.equal(await run(reach), '7\n');
});

test('a resize takes effect at once; sleep and wake keep it and every process', async () => {
  const witness = await startWitness(parts.caller, id);
  await resizeSandbox(parts.caller, id, { vcpu: 2, diskGb: 12 });
  await until('the size is in force', async () => {
    const { allocated_vcpu: vcpu, allocated_disk_gb: diskGb } = await getSandbox(parts.caller, id);
    return vcpu === 2 && diskGb === 12 ? true : null;
  });
  assert.equal(await run('nproc'), '2\n');
  assert.equal((await sleepSandbox(parts.caller, id)).status, 'stopped');
  assert.equal(
    errorOf(await call(parts.caller, 'POST', `/v1/sandboxes/${id}/exec`, { command: 'true' }), 409).code,
    'sandbox_state_conflict',
  );
  const { lastWake } = await wakeSandbox(parts.caller, id);
  assert.equal(lastWake?.from, 'snapshot');
  assert.equal(await run('nproc'), '2\n');
  const { pid, first } = await queryWitness(parts.caller, id);
  assert.deepEqual([pid, first], [witness.pid, witness.first]);
  assert.equal((await call(parts.caller, 'POST', `${processPath}/stdin`, { data: 'after\n', offset: 0 })).status, 200);
  await until('the process has ended', async () => ((await processOutput()).complete ? true : null));
  const { chunks, process } = await processOutput();
  assert.deepEqual([chunks.map(({ data }) => data), process.exitCode], [['before\nafter\n'], 7]);
});

test('a destroyed sandbox is gone, and its time is metered for its end user', async () => {
  assert.equal((await destroySandbox(parts.caller, id)).status, 'deleted');
  const { body } = await call(parts.caller, 'GET', `/v1/orgs/${parts.caller.orgId}/usage/end-users`);
  const { endUsers } = getEndUserUsage.response.body.parse(body);
  assert.deepEqual(
    endUsers.map((one) => [one.endUserId, one.machineHours > 0]),
    [['user 1', true]],
  );
});
