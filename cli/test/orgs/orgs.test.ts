// `berth org`, `project`, `key` and `token` against the real service: output, effects and exit
// codes.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { permission } from '@berth/contract/route/permissions.ts';
import { startApi, type TestApi, type TestSession } from '../../../api/test/world/api.ts';
import { berth, cleanEnvironment, MAIN, newHome, type Ended } from '../world/berth.ts';
import { readProfiles, sessionOf, writeProfiles } from '../world/profile.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';

let api: TestApi;
let owner: TestSession;
let home: string;
before(async () => {
  api = await startApi({ durable: false, settings: { requestsPerMinute: 100_000 } });
  owner = await api.makeSession({ role: 'owner' });
  home = newHome();
  writeProfiles(home, {
    default: { url: api.url, session: sessionOf(owner.token, 'unused', 3_600), orgId: api.orgId },
  });
});
after(async () => await api.close());

const run = async (args: readonly string[], stdin = ''): Promise<Ended> =>
  await berth(args, { env: { HOME: home }, stdin });
/** Returns stdout of a successful run. */
const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 0, stderr);
  return stdout;
};
const asApi = async (path: string): Promise<unknown> => (await api.call('GET', path, { token: owner.token })).body;
const daysAgo = (days: number): Date => new Date(Date.now() - days * 86_400_000 - 60_000);
const columns = (width: number, ...words: string[]): PseudoTerminal => {
  const command = `stty cols ${width}; exec '${process.execPath}' '${MAIN}' ${words.join(' ')}`;
  return new PseudoTerminal('/bin/sh', ['-c', command], cleanEnvironment({ HOME: home, NO_COLOR: '1' }));
};

test('projects are listed as a table that fits the terminal but keeps ids, and as JSON', async () => {
  await api.db
    .updateTable('project')
    .set({ created_at: daysAgo(3), name: 'First project' })
    .where('id', '=', api.projectId)
    .execute();
  const wide = [
    'ID                            NAME           IN USE  USE CASE  REPOSITORY  CREATED',
    `${api.projectId}  First project  yes     internal  -           3 d ago`,
    '',
  ];
  assert.equal(await ok('project', 'ls'), wide.join('\n'));
  assert.deepEqual(JSON.parse(await ok('project', 'ls', '--json')), await asApi(`/v1/orgs/${api.orgId}/projects`));
  const screen = columns(70, 'project', 'ls');
  assert.equal(await screen.ended(), 0);
  assert.equal(
    screen.text,
    [
      'ID                            NAME    IN USE  USE C…  REPOSI…  CREATED',
      `${api.projectId}  First…  yes     inter…  -        3 d ago`,
      '',
    ].join('\r\n'),
  );
});

test('a project is created, shown, changed, used and deleted', async () => {
  const made = await run([
    'project',
    'create',
    'shop',
    '--use-case',
    'external',
    '--wake-on-use',
    'on',
    '--metadata',
    'team=web',
    '--metadata',
    'tier=1=2',
  ]);
  assert.equal(made.code, 0, made.stderr);
  const id = made.stdout.trim();
  assert.match(id, /^prj_[a-z2-7]{24}$/);
  assert.equal(made.stderr, `to make it the default: berth project use ${id}\n`);

  const changed = await ok(
    'project',
    'update',
    id,
    '--default-repository',
    'acme/shop',
    '--default-idle-minutes',
    '60',
    '--default-profile',
    'build-heavy',
  );
  const shown = await ok('project', 'get', id);
  assert.equal(shown, changed);
  const { project } = (await asApi(`/v1/orgs/${api.orgId}/projects/${id}`)) as {
    project: { createdAt: string; updatedAt: string };
  };
  assert.equal(
    shown,
    [
      `id                    ${id}`,
      'name                  shop',
      `org                   ${api.orgId}`,
      'use case              external',
      'default repository    acme/shop',
      'default profile       build-heavy',
      'default idle minutes  60',
      'wake on use           yes',
      'agent approvals       ask',
      'repo credentials      none',
      'metadata team         web',
      'metadata tier         1=2',
      `created               ${project.createdAt}`,
      `updated               ${project.updatedAt}`,
      '',
    ].join('\n'),
  );
  assert.deepEqual(
    JSON.parse(await ok('project', 'get', id, '--json')),
    await asApi(`/v1/orgs/${api.orgId}/projects/${id}`),
  );
  const taken = await ok('project', 'update', id, '--default-repository', 'none', '--default-idle-minutes', 'none');
  assert.doesNotMatch(taken, /default repository|idle/);

  assert.equal(await ok('project', 'use', 'shop'), `switched to project ${id} (shop)\n`);
  assert.equal(readProfiles(home).profiles['default']?.projectId, id);
  assert.match(await ok('project', 'get'), new RegExp(`^id +${id}$`, 'm'));
  const unsure = await run(['project', 'rm', id]);
  assert.deepEqual([unsure.code, unsure.stdout], [2, '']);
  assert.match(unsure.stderr, /confirmation required, .*\n {2}use --yes to skip the confirmation/);
  const screen = columns(100, 'project', 'rm', id);
  await screen.shows('? [y/N] ');
  screen.type('n\r');
  assert.equal(await screen.ended(), 1);
  assert.equal(await ok('project', 'rm', id, '--yes'), `removed the project ${id} (shop)\n`);
  const gone = await run(['project', 'get', id]);
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
  assert.match(gone.stderr, /^berth: .* \([a-z_]+\)\n/);
});

test('the token of a git host comes from a file or stdin, and is never shown', async () => {
  const token = api.secret('ghp_token_of_the_test_0123456789', 'a token of a git host');
  const file = join(home, 'token.txt');
  writeFileSync(file, `${token}\n`);
  for (const [args, stdin] of [
    [['--repo-token-file', file, '--repo-username', 'x-access-token'], ''],
    [['--repo-token-file', '-'], token],
  ] as const) {
    const { code, stdout, stderr } = await run(['project', 'update', api.projectId, ...args], stdin);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^repo credentials +stored$/m);
    assert.ok(!(stdout + stderr).includes(token));
  }
  assert.match(await ok('project', 'update', api.projectId, '--no-repo-credentials'), /^repo credentials +none$/m);
  for (const [args, expected] of [
    [['--repo-username', 'x'], /--repo-username requires --repo-token-file/],
    [
      ['--repo-token-file', file, '--no-repo-credentials'],
      /--repo-token-file cannot be combined with --no-repo-credentials/,
    ],
    [[], /no changes given/],
    [['--metadata', 'x'], /It must be key=value/],
    [['--default-idle-minutes', 'soon'], /a whole number from 0 to 43200, or none/],
  ] as const) {
    const { code, stdout, stderr } = await run(['project', 'update', api.projectId, ...args]);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, expected);
  }
});

test('an API key is printed alone and once, works with its scopes, and is refused once revoked', async () => {
  const { code, stdout, stderr } = await run([
    'key',
    'create',
    'ci',
    '--scope',
    'org.read',
    '--scope',
    'project.read,sandbox.read',
    '--expires-in-days',
    '7',
  ]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^brt_\S+\n$/);
  const token = api.secret(stdout.trim(), 'the key');
  assert.ok(!stderr.includes(token));
  const [, id = ''] =
    /^the key (key_[a-z2-7]+) \(ci\): expires in 7 d, scopes: org\.read, project\.read, sandbox\.read$/m.exec(stderr) ??
    [];
  assert.notEqual(id, '', stderr);
  assert.equal((await api.call('GET', `/v1/orgs/${api.orgId}/projects`, { token })).status, 200);
  const listed = await ok('key', 'ls');
  assert.match(
    listed,
    new RegExp(
      `^${id}  ci +${token.slice(0, 8)}\\S* +org\\.read, project\\.read, sandbox\\.read  no   expires in 7 d  +\\S`,
      'm',
    ),
  );
  assert.ok(!listed.includes(token));
  assert.deepEqual(JSON.parse(await ok('key', 'ls', '--json')), await asApi(`/v1/orgs/${api.orgId}/api-keys`));
  assert.equal(await ok('key', 'revoke', id), `revoked the key ${id} (ci)\n`);
  assert.equal((await api.call('GET', '/v1/me', { token })).status, 401);

  const asJson = JSON.parse(await ok('key', 'create', 'other', '--json')) as { token: string };
  api.secret(asJson.token, 'the other key');
  assert.deepEqual(Object.keys(asJson), ['apiKey', 'token']);
});

test('an unknown scope is refused before the request, with a suggestion and the valid ones', async () => {
  for (const [typed, meant] of [
    ['sandbox.exce', /^berth: unknown scope 'sandbox\.exce'; did you mean sandbox\.exec/],
    ['share', /did you mean sandbox\.preview\.share\?/],
    ['everything', /^berth: unknown scope 'everything'\n/],
  ] as const) {
    const { code, stdout, stderr } = await run(['key', 'create', 'ci', '--scope', typed]);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, meant);
    assert.ok(permission.options.every((name) => stderr.includes(name)));
  }
});

test('a personal agent token is created, listed and revoked', async () => {
  const { code, stdout, stderr } = await run([
    'token',
    'create',
    'phone',
    '--access',
    'read_send',
    '--can-approve',
    '--expires-in-days',
    '2',
  ]);
  assert.equal(code, 0, stderr);
  const token = api.secret(stdout.trim(), 'the agent token');
  const [, id = ''] = /^the token (agt_[a-z2-7]+) \(phone\): expires in 2 d, read_send, approves$/m.exec(stderr) ?? [];
  assert.notEqual(id, '', stderr);
  assert.match(
    await ok('token', 'ls'),
    new RegExp(`^${id}  phone  ${token.slice(0, 6)}\\S* +read_send, approves  expires in 2 d  never$`, 'm'),
  );
  const ofMembers = await ok('org', 'agent-tokens');
  assert.match(ofMembers, new RegExp(`^${id}  ${owner.email}  phone  read_send, approves  no   in 2 d$`, 'm'));
  assert.equal(await ok('org', 'revoke-agent-token', id), `revoked the token ${id} (phone) for the org\n`);
  assert.equal(await ok('org', 'agent-tokens'), '');
  assert.equal(await ok('token', 'revoke', id), `revoked the token ${id} (phone)\n`);
  const refused = await run(['token', 'create', 'x', '--access', 'read_only', '--can-wake']);
  assert.deepEqual([refused.code, refused.stdout], [2, '']);
});

test('orgs are listed, created and used; an invisible org cannot be used', async () => {
  const id = (await ok('org', 'create', 'Second org')).trim();
  assert.equal(await ok('org', 'rename', 'Other org', '--org', id), `renamed the org ${id} to Other org\n`);
  assert.equal(await ok('org', 'rename', 'Second org', '--org', id), `renamed the org ${id} to Second org\n`);
  assert.match(id, /^org_[a-z2-7]{24}$/);
  assert.deepEqual(JSON.parse(await ok('org', 'ls', '--json')), await asApi('/v1/me/orgs'));
  assert.match(await ok('org', 'ls'), new RegExp(`^${api.orgId}  First org   yes     owner      \\S`, 'm'));
  await ok('project', 'use', api.projectId);
  assert.equal(await ok('org', 'use', 'Second org'), `switched to org ${id} (Second org)\n`);
  const { url, orgId, projectId } = readProfiles(home).profiles['default'] ?? {};
  assert.deepEqual([url, orgId, projectId], [api.url, id, undefined], 'the project was one of the other org');
  assert.deepEqual(await run(['project', 'ls']), {
    code: 0,
    stdout: '',
    stderr: 'no projects; create one with berth project create NAME\n',
  });
  await ok('org', 'use', api.orgId);
  const unseen = await run(['org', 'use', 'org_of_others']);
  assert.deepEqual(
    [unseen.code, unseen.stderr],
    [1, "berth: no org 'org_of_others' found\n  berth org ls lists your orgs\n"],
  );
  const byKey = await berth(['org', 'use', api.orgId], {
    env: { HOME: home, BERTH_URL: api.url, BERTH_API_KEY: api.token },
  });
  assert.deepEqual([byKey.code, byKey.stdout], [2, '']);
  assert.match(byKey.stderr, /BERTH_API_KEY is set, .*\n {2}set BERTH_ORG_ID/);
});

test('members and invitations are shown and changed, by id or email address', async () => {
  const { email, userId } = await api.makeSession({ role: 'member' });
  assert.deepEqual(JSON.parse(await ok('org', 'members', '--json')), await asApi(`/v1/orgs/${api.orgId}/members`));
  assert.match(await ok('org', 'members'), new RegExp(`^${userId}  ${email} .* member  \\d+ s ago$`, 'm'));
  assert.equal(await ok('org', 'set-role', email, 'viewer'), `${email} now has the role viewer\n`);
  assert.equal(await ok('org', 'remove-member', userId), `removed ${email} from the org\n`);
  const gone = await run(['org', 'set-role', email, 'viewer']);
  assert.deepEqual([gone.code, gone.stdout], [1, '']);
  assert.equal((await run(['org', 'set-role', email, 'king'])).code, 2);

  const invited = await run(['org', 'invite', 'ada@example.com', '--role', 'operator']);
  const id = invited.stdout.trim();
  assert.deepEqual(
    [invited.code, invited.stderr],
    [0, 'invited ada@example.com as operator; the emailed link expires in 7 d\n'],
  );
  assert.match(
    await ok('org', 'invitations'),
    new RegExp(`^${id}  ada@example\\.com  operator  not yet  in 7 d$`, 'm'),
  );
  assert.deepEqual(
    JSON.parse(await ok('org', 'invitations', '--json')),
    await asApi(`/v1/orgs/${api.orgId}/invitations`),
  );
  assert.equal(await ok('org', 'revoke-invitation', id), 'revoked the invitation of ada@example.com\n');
});

test('caps of an org and of a project are shown and set', async () => {
  assert.match(await ok('org', 'caps'), /^own cap +none\noverage allowed +no$/m);
  assert.match(
    await ok('org', 'caps', '--machine-hours', '500', '--overage', 'on'),
    /^effective cap +500 machine hours\noverage allowed +yes$/m,
  );
  assert.match(await ok('org', 'caps'), /^own cap +500 machine hours$/m);
  assert.match(await ok('org', 'caps', '--machine-hours', 'none'), /^own cap +none$/m);
  assert.deepEqual(JSON.parse(await ok('org', 'caps', '--json')), await asApi(`/v1/orgs/${api.orgId}/subscription`));
  assert.match(await ok('project', 'caps', api.projectId, '--machine-hours', '2.5'), /^cap +2\.5 machine hours$/m);
  assert.match(await ok('project', 'caps', api.projectId), /2\.5 machine hours/);
  assert.match(await ok('project', 'caps', api.projectId, '--machine-hours', 'none'), /none$/m);
  assert.equal((await run(['org', 'caps', '--machine-hours', '-1'])).code, 2);
});

test('ids that would change the URL path are refused before the request', async () => {
  for (const args of [
    ['project', 'get', '..'],
    ['project', 'get', '--project', '../x'],
    ['project', 'ls', '--org', 'org/x'],
    ['key', 'revoke', '..', '--yes'],
    ['org', 'revoke-invitation', 'a?b'],
  ]) {
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, /invalid (?:org|project|key|invitation) id '/);
  }
});

test('a domain is claimed, proven and removed by name, and single sign-on required', async () => {
  const claimed = await ok('org', 'claim-domain', 'Cli.example.test');
  const [, name = '', value = ''] = /^(\S+) TXT "(\S+)"\n$/.exec(claimed) ?? [];
  assert.equal(name, '_berth-challenge.cli.example.test');
  const early = await run(['org', 'verify-domain', 'cli.example.test']);
  assert.equal(early.code, 1);
  assert.ok(early.stderr.includes(`the TXT record ${name} with the value ${value} is missing`), early.stderr);
  api.txtRecords.set(name, [value]);
  assert.equal(await ok('org', 'verify-domain', 'cli.example.test'), 'cli.example.test is proven\n');
  const refused = await run(['org', 'require-sso', 'on']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /only a sign-in by single sign-on can require it[\s\S]*berth login/);
  await api.db.updateTable('session').set({ viaSso: true }).where('id', '=', owner.loginId).execute();
  assert.equal(await ok('org', 'require-sso', 'on'), 'single sign-on is required\n');
  assert.match(await ok('org', 'domains'), /^DOMAIN +PROVEN +CLAIM EXPIRES\ncli\.example\.test +yes/);
  assert.equal((await run(['org', 'remove-domain', 'cli.example.test'])).code, 1, 'the last proven one');
  assert.equal(await ok('org', 'require-sso', 'off'), 'single sign-on is not required\n');
  assert.equal(await ok('org', 'remove-domain', 'CLI.example.test'), 'removed cli.example.test\n');
  assert.match((await run(['org', 'remove-domain', 'x.test'])).stderr, /the org has no domain 'x\.test'/);
});

test('a person changes its own name', async () => {
  assert.match(await ok('whoami', '--rename', 'Ada King'), /^name +Ada King$/m);
  assert.match(await ok('whoami'), /^name +Ada King$/m);
  const { code, stderr } = await run(['whoami', '--rename', '']);
  assert.deepEqual([code, /--rename must be at least 1 character long/.test(stderr)], [2, true], stderr);
});
