// `berth sandbox create` against a real service: effects, output, and checks before any request.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { freePort } from '../../../protocol/test/free-port.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth, startBerth } from '../world/berth.ts';
import { masked, Service } from '../world/service.ts';

let service: Service;
let folder: string;
before(async () => {
  service = await Service.start();
  await service.api.db
    .updateTable('project')
    .set({ use_case: 'external' })
    .where('id', '=', service.api.projectId)
    .execute();
  folder = mkdtempSync(join(tmpdir(), 'berth-keys-'));
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'me@tests', '-f', join(folder, 'id')]);
});
after(async () => {
  await service.close();
  rmSync(folder, { recursive: true });
});

const sandboxOf = async (id: string): Promise<Sandbox> =>
  ((await service.body(`/v1/sandboxes/${id}`)) as { sandbox: Sandbox }).sandbox;

test('create prints only the id in a pipe, and a few fields in a terminal', async () => {
  const piped = await service.run(['sandbox', 'create', '--name', 'one']);
  assert.equal(piped.code, 0, piped.stderr);
  assert.match(piped.stdout, /^sbx_[a-z2-7]{24}\n$/);
  assert.equal((await sandboxOf(piped.stdout.trim())).status, 'ready');
  const { code, text } = await service.show(['sandbox', 'create', '--name', 'two', '--size', 'large'], {
    env: { NO_COLOR: '1' },
  });
  assert.equal(code, 0, text);
  // Progress is only shown if the create is slow.
  const fields = masked(text).slice(masked(text).indexOf('id '));
  assert.equal(fields, `id      sbx_${'x'.repeat(24)}\nname    two\nstatus  ready\nsize    4 vCPU, 8 GB, 40 GB disk\n`);
});

test('every API field is set by its option', async () => {
  const options = [
    '--name',
    'all',
    '--agent',
    'agent_two',
    '--sandbox-profile',
    'long-running',
    '--size',
    'small',
    '--end-user',
    'user 7',
  ];
  const labels = [
    '--metadata',
    'plan=trial',
    '--metadata',
    'eq=a=b',
    '--metadata',
    'größe=日本',
    '--metadata',
    'none=',
  ];
  const further = ['--mode', 'ephemeral', '--ttl-seconds', '2h', '--ssh-key', join(folder, 'id.pub')];
  const repository = ['--repository', 'acme/app', '--branch', 'main'];
  const { code, stdout, stderr } = await service.run([
    'sandbox',
    'create',
    ...options,
    ...labels,
    ...further,
    ...repository,
    '--json',
  ]);
  assert.equal(code, 0, stderr);
  const { sandbox } = JSON.parse(stdout) as { sandbox: Sandbox };
  assert.deepEqual(
    { sandbox },
    await service.body(`/v1/sandboxes/${sandbox.id}`),
    'the answer of the API and nothing else',
  );
  const { name, agent, sandbox_profile: profile, allocated_vcpu: vcpu, endUserId, mode, ttlSeconds, branch } = sandbox;
  assert.deepEqual(
    [name, agent, profile, vcpu, endUserId, mode, ttlSeconds, sandbox.repository, branch],
    ['all', 'agent_two', 'long-running', 1, 'user 7', 'ephemeral', 7_200, 'acme/app', 'main'],
  );
  assert.deepEqual(
    Object.entries(sandbox.metadata).toSorted(([one], [other]) => one.localeCompare(other)),
    [
      ['eq', 'a=b'],
      ['größe', '日本'],
      ['none', ''],
      ['plan', 'trial'],
    ],
  );
  assert.equal(sandbox.clone?.status, 'cloned', 'it stays until the repository is there');
  const { ssh } = (await service.body(`/v1/sandboxes/${sandbox.id}/ssh`)) as {
    ssh: { authorizedKeyFingerprint: string };
  };
  const [, fingerprint] = execFileSync('ssh-keygen', ['-lf', join(folder, 'id.pub')], { encoding: 'utf8' }).split(' ');
  assert.equal(ssh.authorizedKeyFingerprint, fingerprint);
});

test("--ttl-seconds makes a sandbox ephemeral; --no-repository overrides the project's default", async () => {
  const { projectId, db } = service.api;
  const of = { default_repository: 'acme/app', default_branch: 'dev' };
  await db.updateTable('project').set(of).where('id', '=', projectId).execute();
  const [own, none, branchless] = await Promise.all(
    [['--ttl-seconds', '90'], ['--no-repository'], ['--no-branch', '--persistence-policy', 'always_on']].map(
      async (options) => {
        const { code, stdout, stderr } = await service.run(['sandbox', 'create', ...options, '--json']);
        assert.equal(code, 0, stderr);
        return (JSON.parse(stdout) as { sandbox: Sandbox }).sandbox;
      },
    ),
  );
  await db
    .updateTable('project')
    .set({ default_repository: null, default_branch: null })
    .where('id', '=', projectId)
    .execute();
  assert.deepEqual(
    [own?.mode, own?.ttlSeconds, own?.repository, own?.branch],
    ['ephemeral', 90, of.default_repository, 'dev'],
  );
  assert.deepEqual([none?.repository, none?.branch], [null, null]);
  assert.deepEqual(
    [branchless?.repository, branchless?.branch, branchless?.persistencePolicy],
    [of.default_repository, null, 'always_on'],
  );
});

test('the same command with the same idempotency key returns the same sandbox, even asleep', async () => {
  const words = ['sandbox', 'create', '--name', 'once', '--idempotency-key', 'order 7'];
  const first = await service.run(words);
  const id = first.stdout.trim();
  await service.run(['sandbox', 'sleep', id]);
  const second = await service.run(words);
  assert.deepEqual([second.code, second.stdout], [0, first.stdout], second.stderr);
  const other = await service.run([...words, '--size', 'large']);
  assert.deepEqual([other.code, other.stdout], [1, '']);
  assert.match(other.stderr, /\(idempotency_key_\w+\)/);
});

test('--no-wait returns during creation; a repository that cannot be cloned is reported with the id', async () => {
  service.api.host.createMs = 400;
  const early = await service.run(['sandbox', 'create', '--no-wait', '--json']);
  service.api.host.createMs = 0;
  assert.equal((JSON.parse(early.stdout) as { sandbox: Sandbox }).sandbox.status, 'provisioning');
  service.api.host.cloneResults.push({
    outcome: 'failed',
    code: 'branch_not_found',
    message: 'fatal: Remote branch x not found',
  });
  const { code, stdout, stderr } = await service.run(['sandbox', 'create', '--repository', 'acme/none']);
  assert.equal(code, 0);
  assert.match(stdout, /^sbx_[a-z2-7]{24}\n$/);
  assert.match(
    stderr,
    /^berth: the repository was not cloned: .+ \(\w+\)\n {2}berth logs sbx_[a-z2-7]{24} shows git's output\n$/m,
  );
});

test('a failed creation names the sandbox, its reason and a remedy; stdout stays empty', async () => {
  service.api.host.refuseCreates.push({ code: 'create_failed', message: 'the guest did not answer' });
  const { code, stdout, stderr } = await service.run(['sandbox', 'create']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(
    stderr,
    /^berth: sbx_[a-z2-7]{24} failed: .+ \(create_failed\)\n {2}berth logs (sbx_[a-z2-7]{24}) shows why; berth sandbox rm \1 deletes it\n$/m,
  );
});

test('Ctrl-C during creation names the remaining sandbox', async () => {
  service.api.host.createMs = 60_000;
  const { child, seen, ended } = startBerth(['sandbox', 'create'], { env: service.environment() });
  const started = Promise.withResolvers<void>();
  child.stderr.on('data', () => {
    if (/sbx_[a-z2-7]{24} is provisioning/.test(seen.stderr)) started.resolve();
  });
  await Promise.race([started.promise, ended]);
  child.kill('SIGINT');
  const { code, stdout, stderr } = await ended;
  service.api.host.createMs = 0;
  assert.deepEqual([code, stdout], [130, '']);
  const [, id = ''] = /berth: (sbx_\w+) may still be created; delete it with berth sandbox rm \1/.exec(stderr) ?? [];
  assert.match(stderr, /berth: stopped by SIGINT\n$/);
  assert.match((await service.run(['sandbox', 'rm', id])).stdout, /^sbx_\w+ deleted\n$/);
});

test('a lost response is reported with a remedy', async () => {
  const env = {
    ...service.environment(),
    BERTH_ORG_ID: 'org_a',
    BERTH_PROJECT_ID: 'prj_a',
    BERTH_URL: 'http://127.0.0.1:9',
  };
  const plain = await berth(['sandbox', 'create'], { env });
  const keyed = await berth(['sandbox', 'create', '--idempotency-key', 'k'], { env });
  assert.deepEqual([plain.code, plain.stdout, keyed.code], [1, '', 1]);
  assert.match(
    plain.stderr,
    /no response: .*The sandbox may have been created.*\(connection_failed\)\n {2}check with berth sandbox ls/,
  );
  assert.match(keyed.stderr, /Repeat the call with the same idempotencyKey/);
});

test('a refused connection created nothing, and the URL is the remedy', async () => {
  const port = await freePort();
  const env = { ...service.environment(), BERTH_ORG_ID: 'org_a', BERTH_PROJECT_ID: 'prj_a' };
  for (const verb of [
    ['sandbox', 'create'],
    ['run', '--', 'true'],
  ]) {
    const { code, stderr } = await berth(verb, { env: { ...env, BERTH_URL: `http://127.0.0.1:${port}` } });
    assert.notEqual(code, 0);
    assert.match(stderr, /The request was not sent \(connection_failed\)\n {2}check the URL of the API/);
    assert.doesNotMatch(stderr, /may have been created|berth sandbox ls/);
  }
});

test('a private key is refused before the request, and its text is never shown', async (t) => {
  const api = await ApiServer.start();
  t.after(() => api.close());
  let asked = 0;
  api.json = () => (asked += 1);
  const { code, stdout, stderr } = await berth(['sandbox', 'create', '--ssh-key', join(folder, 'id')], {
    env: api.environment,
  });
  assert.deepEqual([code, stdout, asked], [2, '', 0]);
  assert.equal(
    stderr,
    `berth: ${folder}/id is a private key; it was not sent\n  use the public key: --ssh-key ${folder}/id.pub\n`,
  );
  copyFileSync(join(folder, 'id'), join(folder, "it's"));
  const quoted = await berth(['sandbox', 'create', '--ssh-key', join(folder, "it's")], { env: api.environment });
  assert.ok(quoted.stderr.endsWith(`use the public key: --ssh-key '${folder}/it'\\''s.pub'\n`), quoted.stderr);
  const [, secret = ''] = readFileSync(join(folder, 'id'), 'utf8').split('\n');
  assert.ok(!stderr.includes(secret));
});

test('invalid values are refused with exit code 2 and the allowed ones', async () => {
  writeFileSync(join(folder, 'two.pub'), 'ssh-ed25519 AAAA\nssh-ed25519 AAAA\n');
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['--agent', 'agent_three'], /'agent_three' is invalid. Allowed choices are agent_one, agent_two/],
    [['--size', 'huge'], /Allowed choices are small, medium, large, xlarge/],
    [['--sandbox-profile', 'x'], /Allowed choices are auto,/],
    [['--persistence-policy', 'x'], /Allowed choices are always_on, sleep_resume/],
    [['--mode', 'x'], /Allowed choices are persistent, ephemeral/],
    [['--mode', 'ephemeral'], /--mode ephemeral requires --ttl-seconds, for example --ttl-seconds 2h/],
    [['--mode', 'persistent', '--ttl-seconds', '60'], /--ttl-seconds cannot be combined with --mode persistent/],
    [
      ['--ttl-seconds', '2 hours'],
      /'--ttl-seconds <time>' argument '2 hours' is invalid. It must be a number of seconds or a duration such as/,
    ],
    [['--ttl-seconds', '25h'], /from 1 s to 86400 s \(1 d\)/],
    [['--name', ''], /It must have 1 to 100 characters, not 0/],
    [['--name', 'x'.repeat(101)], /It must have 1 to 100 characters, not 101/],
    [['--end-user', ''], /'--end-user <id>'.*1 to 512 characters/],
    [['--metadata', 'novalue'], /It must be key=value/],
    [['--metadata', '=x'], /It must be key=value/],
    [['--idempotency-key', ''], /1 to 255 characters/],
    [['--ssh-key', join(folder, 'none')], /cannot read .*none: ENOENT/],
    [['--ssh-key', folder], /cannot read .*: EISDIR/],
    [['--ssh-key', '/dev/zero'], /\/dev\/zero is too large for a public key \(limit 65536 bytes\)/],
    [['--ssh-key', join(folder, 'two.pub')], /two\.pub must be one line: one public key/],
    [['--memory-gb', '4'], /unknown option '--memory-gb'/],
    [['extra'], /too many arguments/],
  ];
  await Promise.all(
    cases.map(async ([words, expected]) => {
      const { code, stdout, stderr } = await berth(['sandbox', 'create', ...words], {
        env: { BERTH_URL: 'http://127.0.0.1:9' },
      });
      assert.deepEqual([code, stdout], [2, ''], `${words.join(' ')}: ${stderr}`);
      assert.match(stderr, expected);
    }),
  );
});

test('ensure creates the sandbox of an end user once, and wakes it', async () => {
  const ensure = (...more: string[]): ReturnType<Service['run']> =>
    service.run(['sandbox', 'ensure', '--end-user', 'customer-7', ...more]);
  const made = await Promise.all([ensure('--name', 'seven', '--size', 'small'), ensure('--name', 'seven')]);
  assert.deepEqual(
    made.map(({ code }) => code),
    [0, 0],
  );
  const id = made[0]?.stdout.trim() ?? '';
  assert.match(id, /^sbx_[a-z2-7]{24}$/);
  assert.equal(made[1]?.stdout.trim(), id);
  assert.equal((await service.run(['sandbox', 'sleep', id])).code, 0);
  const woken = await ensure('--json');
  const { sandbox } = JSON.parse(woken.stdout) as { sandbox: Sandbox };
  assert.deepEqual([sandbox.id, sandbox.status, sandbox.key, sandbox.name], [id, 'ready', 'customer-7', 'seven']);
  const other = await service.run(['sandbox', 'ensure', '--key', 'customer-7/tests', '--end-user', 'customer-7']);
  assert.notEqual(other.stdout.trim(), id);

  const refused = await ensure('--agent', 'agent_two');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, new RegExp(`belongs to the sandbox ${id}.*agent is "agent_one", not "agent_two"`));
  const missing = await service.run(['sandbox', 'ensure', '--size', 'small']);
  assert.deepEqual([missing.code, /no key given: use --end-user or --key/.test(missing.stderr)], [2, true]);
});

test('ensure of a sandbox that cannot be woken exits with 1 and the reason', async () => {
  const id = (await service.run(['sandbox', 'ensure', '--key', 'no wake'])).stdout.trim();
  await service.run(['sandbox', 'sleep', id]);
  service.api.host.refuseWakes.push({ code: 'wake_failed', message: 'no memory left' });
  const { code, stdout, stderr } = await service.run(['sandbox', 'ensure', '--key', 'no wake']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, new RegExp(`${id} is stopped: .*its VM could not be woken.*wake_failed`));
});

test('update sets and removes labels, renames, and sets the idle time', async () => {
  const id = (await service.run(['sandbox', 'create', '--metadata', 'a=1', '--metadata', 'b=2'])).stdout.trim();
  const changes = ['--name', 'new', '--metadata', 'c=3', '--unset', 'a', '--idle-minutes', '90'];
  const { code, stdout, stderr } = await service.run(['sandbox', 'update', id, ...changes]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /name +new\n/);
  const { name, metadata, idleMinutes } = await sandboxOf(id);
  assert.deepEqual([name, metadata, idleMinutes], ['new', { b: '2', c: '3' }, 90]);
  assert.equal((await service.run(['sandbox', 'update', id, '--idle-minutes', 'none'])).code, 0);
  assert.equal((await sandboxOf(id)).idleMinutes, null);
  for (const [options, message] of [
    [[], /no change given: use --name, --metadata, --unset or --idle-minutes/],
    [['--metadata', 'a=1', '--unset', 'a'], /both name the label a/],
    [['--idle-minutes', 'soon'], /It must be a whole number from 0 to .*, or none/],
  ] as const) {
    const refused = await service.run(['sandbox', 'update', id, ...options]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, message);
  }
});
