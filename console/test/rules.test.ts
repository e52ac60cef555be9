// Rules without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '@berth/contract/routes.ts';
import type { api } from '@berth/sdk';
import { ADMINISTRATION, INSTALLATION, permission, ROLE_PERMISSIONS } from '@berth/contract/route/permissions.ts';
import { SANDBOX_ACTION_RULES, SANDBOX_STATES, sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { activityKind } from '@berth/contract/route/activity-kinds.ts';
import { ACTIVITY_KINDS, activityText } from '../src/text/activity.ts';
import { areaOf, byDay, detailsOf, isBad } from '../src/rules/activity.ts';
import { rolesThatMay } from '../src/rules/access.ts';
import { permissionToChange as servicePermission } from '../../api/src/rules/orgs/membership.ts';
import { KEY_PERMISSIONS, keyStateOf, scopesOf } from '../src/rules/api-keys.ts';
import { nameOf, permissionToChange, possibilityToChange, ROLES as ROLE_NAMES } from '../src/rules/members.ts';
import { webAddress } from '../src/rules/web-address.ts';
import { durationBetween } from '../src/rules/duration.ts';
import { stagesOf, stepsOf } from '../src/rules/first-run.ts';
import { forecastOf } from '../src/rules/forecast.ts';
import { parseLabels } from '../src/rules/labels.ts';
import { ACTION_PERMISSIONS, possibilityOf, type SandboxUse } from '../src/rules/sandbox-actions.ts';
import { isMoving, sleepsAt, toneOf } from '../src/rules/status.ts';
import { filterOf, isFiltered, readListing, toggleStatus, writeListing } from '../src/rules/sandbox-filter.ts';
import { visibleText } from '../src/rules/visible-text.ts';

const ACTIONS = Object.keys(ACTION_PERMISSIONS) as SandboxUse[];
const ROLES = Object.entries(ROLE_PERMISSIONS);
const OWNER = { permissions: [...ROLE_PERMISSIONS.owner] };

test("an action is possible exactly where the contract's state table and permissions allow it", () => {
  for (const action of ACTIONS) {
    const names = {
      connect: 'terminalInSandbox',
      exec: 'execInSandbox',
      agent_session: 'createAgentSession',
    } as Record<string, string>;
    const name = names[action] ?? `${action}Sandbox`;
    const route = ROUTES.find((one) => one.name === name);
    assert.equal(ACTION_PERMISSIONS[action], route?.permission, action);
    for (const status of sandboxStatus.options) {
      for (const [role, permissions] of ROLES) {
        const sandbox = { status, mode: 'ephemeral' as const, wakesFrom: 'disk' as const };
        const expected = !permissions.has(ACTION_PERMISSIONS[action])
          ? 'forbidden'
          : SANDBOX_ACTION_RULES[action][status] === 'do'
            ? 'possible'
            : 'state';
        assert.equal(
          possibilityOf(action, sandbox, { permissions: [...permissions] }).kind,
          expected,
          `${action} ${status} ${role}`,
        );
      }
    }
  }
});

test('wake needs something to wake from, and renew an ephemeral sandbox', () => {
  const failed = { status: 'failed', mode: 'persistent', wakesFrom: null };
  assert.deepEqual(possibilityOf('wake', failed, OWNER), { kind: 'nothing-to-wake' });
  assert.deepEqual(possibilityOf('renew', { ...failed, status: 'ready' }, OWNER), { kind: 'not-ephemeral' });
});

test('an unknown status leaves the decision to the service, and without permissions nothing is possible', () => {
  const future = { status: 'hibernating', mode: 'persistent', wakesFrom: null };
  for (const action of ['sleep', 'wake', 'destroy'] as const)
    assert.equal(possibilityOf(action, future, OWNER).kind, 'possible');
  assert.equal(possibilityOf('sleep', future, { permissions: ['sandbox.levitate'] }).kind, 'forbidden');
  assert.equal(toneOf('hibernating'), 'quiet');
  assert.equal(isMoving({ status: 'hibernating', resizing: false }), false);
});

test('the roles with a permission are those of the contract', () => {
  for (const permission of ROLE_PERMISSIONS.owner) {
    const roles = ROLES.filter(([, permissions]) => permissions.has(permission)).map(([role]) => role);
    assert.deepEqual(rolesThatMay(permission), roles);
  }
  assert.deepEqual(rolesThatMay('org.owners.manage'), ['owner']);
});

test('a status without an end of its own is polled fast', () => {
  for (const status of sandboxStatus.options) {
    const moving = !SANDBOX_STATES[status].settled || status === 'running';
    assert.equal(isMoving({ status, resizing: false }), moving, status);
    assert.equal(isMoving({ status, resizing: true }), true);
  }
});

test('a duration is in the largest whole unit', () => {
  const cases = [
    [0, 0, 'second'],
    [59_999, 59, 'second'],
    [60_000, 1, 'minute'],
    [3_600_000, 1, 'hour'],
    [172_800_000, 2, 'day'],
    [-90_000, -1, 'minute'],
  ] as const;
  for (const [ms, count, unit] of cases) assert.deepEqual(durationBetween(0, ms), { count, unit });
});

test('labels are read by line, and a fault names its line', () => {
  assert.deepEqual(parseLabels('team=core\n\n a = b=c \nflag'), { labels: { team: 'core', a: 'b=c', flag: '' } });
  assert.deepEqual(parseLabels('a=1\n=x'), { fault: { kind: 'no-key', line: 2 } });
  assert.deepEqual(parseLabels('k'.repeat(129)), { fault: { kind: 'long-key', line: 1 } });
  assert.deepEqual(parseLabels(`k=${'v'.repeat(1_025)}`), { fault: { kind: 'long-value', line: 1 } });
  const many = Array.from({ length: 25 }, (_, index) => `k${index}=v`).join('\n');
  assert.deepEqual(parseLabels(many), { fault: { kind: 'too-many' } });
});

test('characters that reorder or hide text become visible', () => {
  assert.equal(visibleText('photo\u202Egnp.exe'), 'photo⟨U+202E⟩gnp.exe');
  assert.equal(visibleText('a\u0000b\u001b[31m\u200b\u2066'), 'a⟨U+0000⟩b⟨U+001B⟩[31m⟨U+200B⟩⟨U+2066⟩');
  assert.equal(visibleText('Ünïcode 日本 👩‍💻'), 'Ünïcode 日本 👩‍💻');
});

test('a forecast continues the pace of the period, and is unknown for a young or unused one', () => {
  const usage = {
    periodStartsAt: '2026-11-01T00:00:00.000Z',
    periodEndsAt: '2026-12-01T00:00:00.000Z',
    usedMachineHours: 100,
    sandboxMachineHourLimit: 150,
  };
  const now = Date.parse('2026-11-11T00:00:00Z');
  assert.deepEqual(forecastOf(usage, now), { machineHours: 300, capAt: '2026-11-16T00:00:00.000Z' });
  for (const sandboxMachineHourLimit of [null, 90, 300])
    assert.deepEqual(forecastOf({ ...usage, sandboxMachineHourLimit }, now), { machineHours: 300, capAt: null });
  for (const [used, at] of [
    [100, '2026-11-01T23:59:59Z'],
    [100, '2026-12-01T00:00:00Z'],
    [0, '2026-11-11T00:00:00Z'],
  ] as const)
    assert.equal(forecastOf({ ...usage, usedMachineHours: used }, Date.parse(at)), null);
});

test('the activity of a sandbox tells its stages, and the steps that are done', () => {
  const entry = (kind: string, at: string, actor: api.ActivityEntryActor['kind'] = 'session') => ({
    kind,
    at: `2026-11-11T00:00:0${at}Z`,
    actor: { kind: actor, id: null, userId: null },
  });
  const made = [
    entry('sandbox_ready', '1.700', 'system'),
    entry('sandbox_running', '1.500', 'system'),
    entry('sandbox_created', '1.000'),
  ];
  assert.deepEqual(
    stagesOf(made).map(({ ms }) => ms),
    [0, 500, 700],
  );
  assert.deepEqual(stagesOf(made.slice(0, 2)), []);
  assert.deepEqual(stepsOf(made), { terminal: false, code: false, serve: false, sleep: false });
  const all = [
    entry('sandbox_woken', '9.000', 'system'),
    entry('preview_link_created', '8.000'),
    entry('sandbox_exec', '7.000', 'api_key'),
    entry('sandbox_connected', '6.000'),
    ...made,
  ];
  assert.deepEqual(stepsOf(all), { terminal: true, code: true, serve: true, sleep: true });
});

test('every kind of the contract has words, and an unknown kind its name', () => {
  assert.deepEqual([...ACTIVITY_KINDS].toSorted(), [...activityKind.options].toSorted());
  for (const kind of activityKind.options) assert.notEqual(activityText.kind(kind), kind);
  assert.equal(activityText.kind('sandbox_teleported'), 'sandbox_teleported');
});

test('a kind has the area of its noun, and a failure is marked', () => {
  const areas = ['sandbox_exec', 'agent_token_created', 'agent_turn_ended', 'member_removed', 'robot_built'].map(
    areaOf,
  );
  assert.deepEqual(areas, ['sandbox', 'access', 'agent', 'people', 'org']);
  assert.deepEqual(['sandbox_failed', 'sandbox_egress_denied', 'sandbox_ready'].map(isBad), [true, true, false]);
});

test('only an awake persistent sandbox with an idle time sleeps by itself', () => {
  const sandbox = {
    status: 'ready',
    mode: 'persistent',
    persistencePolicy: 'sleep_resume',
    lastActiveAt: '2026-11-24T00:00:00.000Z',
  } as const;
  const now = Date.parse(sandbox.lastActiveAt) + 60_000;
  assert.equal(sleepsAt(sandbox, null, now), '2026-11-24T00:30:00.000Z');
  assert.equal(sleepsAt(sandbox, 5, now), '2026-11-24T00:05:00.000Z');
  assert.equal(sleepsAt(sandbox, 1, now + 60_000), '2026-11-24T00:02:00.000Z');
  for (const [other, minutes] of [
    [sandbox, 0],
    [{ ...sandbox, status: 'stopped' }, 5],
    [{ ...sandbox, mode: 'ephemeral' }, 5],
    [{ ...sandbox, persistencePolicy: 'always_on' }, 5],
  ] as const)
    assert.equal(sleepsAt(other, minutes, now), null);
});

test('entries are grouped by their day, in their order', () => {
  const entries = ['2026-11-24T00:10:00Z', '2026-11-23T23:59:59Z', '2026-11-23T01:00:00Z'].map((at) => ({ at }));
  assert.deepEqual(
    byDay(entries, (at) => at.toISOString().slice(0, 10)).map(({ day, entries: ofDay }) => [day, ofDay.length]),
    [
      ['2026-11-24', 1],
      ['2026-11-23', 2],
    ],
  );
});

test('details are text by name, whatever their values are', () => {
  const details = { name: 'a', size: 3, none: null, allocation: { vcpu: 2 } };
  assert.deepEqual(detailsOf({ details }), [
    { name: 'name', value: 'a' },
    { name: 'size', value: '3' },
    { name: 'allocation', value: '{"vcpu":2}' },
  ]);
});

test('a member is named by display name, else by address; a former member is not', () => {
  const member = { userId: 'usr_1', email: 'a@example.test', displayName: null, role: 'viewer', joinedAt: '' };
  assert.equal(nameOf([member], 'usr_1'), 'a@example.test');
  assert.equal(nameOf([{ ...member, displayName: 'Ada' }], 'usr_1'), 'Ada');
  assert.equal(nameOf([member], 'usr_2'), undefined);
});

test('scopes of a key are those of its choice, in the order of the contract', () => {
  assert.equal(scopesOf('all', []), null);
  assert.deepEqual(scopesOf('chosen', []), []);
  assert.deepEqual(scopesOf('chosen', ['sandbox.read', 'org.read']), ['org.read', 'sandbox.read']);
  assert.deepEqual(
    scopesOf('read', []),
    permission.options.filter((one) => one.endsWith('.read') && !INSTALLATION.includes(one)),
  );
  const run = scopesOf('run', []) ?? [];
  assert.ok(run.includes('sandbox.create') && run.includes('agent_session.send') && run.includes('project.read'));
  assert.equal(
    run.some((one) => /manage|delete|org\./.test(one)),
    false,
  );
});

test('a key is offered no permission that administers the org', () => {
  const others = permission.options.filter((one) => !ADMINISTRATION.includes(one));
  assert.deepEqual(KEY_PERMISSIONS, others);
  assert.deepEqual(scopesOf('chosen', [...permission.options]), others);
});

test('a key is revoked, else expired at its end, else active', () => {
  const expiresAt = '2026-11-24T00:00:00.000Z';
  const end = Date.parse(expiresAt);
  assert.equal(keyStateOf({ revokedAt: expiresAt, expiresAt }, end), 'revoked');
  assert.equal(keyStateOf({ revokedAt: null, expiresAt }, end), 'expired');
  assert.equal(keyStateOf({ revokedAt: null, expiresAt }, end - 1), 'active');
  assert.equal(keyStateOf({ revokedAt: null, expiresAt: null }, end), 'active');
});

test('a change of a membership needs the permission that the service wants', () => {
  for (const from of [null, ...ROLE_NAMES])
    for (const to of [null, ...ROLE_NAMES]) assert.equal(permissionToChange(from, to), servicePermission({ from, to }));
});

test('the last owner stays, members leave without a permission, and others need one', () => {
  const owner = { userId: 'usr_1', role: 'owner' };
  const viewer = { userId: 'usr_2', role: 'viewer' };
  const possibility = (member: typeof owner, role: (typeof ROLE_NAMES)[number], leaves: boolean, owners = 1) => {
    const all = [viewer, ...Array.from({ length: owners }, () => owner)];
    return possibilityToChange(member, all, { permissions: [...ROLE_PERMISSIONS[role]] }, leaves).kind;
  };
  assert.equal(possibility(owner, 'owner', false), 'last-owner');
  assert.equal(possibility(owner, 'owner', true), 'last-owner');
  assert.equal(possibility(owner, 'owner', false, 2), 'possible');
  assert.equal(possibility(owner, 'admin', false, 2), 'forbidden');
  assert.equal(possibility(viewer, 'admin', false), 'possible');
  assert.equal(possibility(viewer, 'viewer', false), 'forbidden');
  assert.equal(possibility(viewer, 'viewer', true), 'possible');
});

test('only http and https addresses become links', () => {
  assert.equal(webAddress('https://x.example.test/a?b#c'), 'https://x.example.test/a?b#c');
  for (const text of ['javascript:alert(1)', 'data:text/html,x', '/relative', '', 'file:///etc/passwd'])
    assert.equal(webAddress(text), null, text);
});

test('a listing survives the address; unknown values of an address are ignored', () => {
  const listing = {
    q: 'a&b=c',
    projectId: 'prj_a',
    status: ['ready', 'stopped'] as ('ready' | 'stopped')[],
    sort: 'createdAt' as const,
  };
  assert.deepEqual(readListing(writeListing(listing)), listing);
  assert.deepEqual(filterOf(listing), { q: 'a&b=c', projectId: 'prj_a' });
  assert.deepEqual(readListing(new URLSearchParams('q=+&project=&status=deleted&status=x&sort=name&other=1')), {});
  assert.deepEqual(readListing(new URLSearchParams('sort=-createdAt')), {});
  assert.deepEqual([isFiltered({ sort: 'createdAt' }), isFiltered({ q: 'x' })], [false, true]);
});

test('a status is added, and taken away again', () => {
  const one = toggleStatus({ q: 'x' }, 'stopped');
  assert.deepEqual(one, { q: 'x', status: ['stopped'] });
  assert.deepEqual(toggleStatus(one, 'ready'), { q: 'x', status: ['ready', 'stopped'] });
  assert.deepEqual(toggleStatus(one, 'stopped'), { q: 'x' });
});
