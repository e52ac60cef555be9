// The page between a team link and its preview: redirects members at once, refuses others, and
// never redirects elsewhere.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Role } from '@berth/contract/route/permissions.ts';
import { role as roleName } from '@berth/contract/route/permissions.ts';
import { userKey } from '../../src/rules/access/throttle.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { signInUrl } from '../../src/services/previews/access.ts';
import { stopRefilling } from '../sign-in/client.ts';
import { cookieOf, mintLink, tokenIn, requestAccess, type MintedLink } from '../services/previews/links.ts';
import { SETTINGS } from '../world/settings.ts';
import { PASSWORD, startSite, type PageResponse, type TestSite, type TestVisitor } from './site.ts';
import { makeDomainRow } from '../world/people-rows.ts';

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

async function link(changes: { expiresInSeconds?: number } = {}): Promise<MintedLink> {
  return await mintLink(site.api, (await site.api.makeSandbox('ready')).id, changes);
}

/** Path of the service's page to which the link's preview redirects a browser without a cookie. */
async function pageOf(team: MintedLink, path = '/'): Promise<string> {
  const { refusal } = await requestAccess(site.api.previewAccess, team);
  assert.ok(typeof refusal === 'object', JSON.stringify(refusal));
  const url = new URL(signInUrl(refusal, path));
  assert.equal(url.origin, SETTINGS.publicUrl);
  return url.pathname + url.search;
}

/** Signs in a new user with the role in the first org. */
async function signedIn(role: Role | null): Promise<{ visitor: TestVisitor; userId: string; email: string }> {
  const { userId, email } = await site.account();
  if (role !== null) await insertMembership(site.api.db, { orgId: site.api.orgId, userId, role });
  const visitor = site.visitor();
  await visitor.signIn(email);
  return { visitor, userId, email };
}

const originOf = ({ sandboxId, port }: MintedLink): string =>
  `http://${port}-${sandboxId.slice('sbx_'.length)}.${new URL(SETTINGS.previewUrl).host}`;

/** Returns the preview URL of a redirect. */
function leadsTo(answer: PageResponse): URL {
  assert.equal(answer.status, 303, answer.text);
  return new URL(answer.headers.get('location') ?? '');
}

test('a member whose org requires single sign-on gets a page that says so, and no grant', async () => {
  const { visitor, email } = await signedIn('member');
  const page = await pageOf(await link());
  const domain = email.slice(email.indexOf('@') + 1);
  await makeDomainRow(site.api.db, { orgId: site.api.orgId, state: 'proven', domain });
  const require = (sso_required: boolean): Promise<unknown> =>
    site.api.db.updateTable('org').set({ sso_required }).where('id', '=', site.api.orgId).execute();
  await require(true);
  try {
    const { status, heading, headers } = await visitor.get(page);
    assert.deepEqual([status, heading, headers.get('location')], [403, 'This preview needs single sign-on', null]);
  } finally {
    await require(false);
  }
});

for (const role of roleName.options) {
  test(`${role}: a signed-in user is redirected to the preview at once and gets access`, async () => {
    const { visitor, userId } = await signedIn(role);
    const team = await link();
    const url = leadsTo(await visitor.get(await pageOf(team, '/a/b?x=1&y=%2F')));
    const token = tokenIn(site.api, url.href);
    assert.equal(url.href, `${originOf(team)}/a/b?x=1&y=%2F&token=${token}`);
    assert.match(token, /^bpt_grant\./);
    const { access } = await requestAccess(site.api.previewAccess, team, { token });
    assert.equal(access?.link.kind === 'team' && access.link.userId, userId);
    cookieOf(site.api, { access: access! });
  });
}

test('a signed-out user signs in first and returns to the requested preview', async () => {
  const { email, userId } = await site.account();
  await insertMembership(site.api.db, { orgId: site.api.orgId, userId, role: 'member' });
  const team = await link();
  const page = await pageOf(team, '/deep?x=%20&y');
  const visitor = site.visitor();
  const toSignIn = await visitor.get(page);
  const signIn = toSignIn.headers.get('location') ?? '';
  assert.equal(signIn, `/sign-in?return_to=${encodeURIComponent(page).replaceAll('%20', '+')}`);
  const form = await visitor.get(signIn);
  assert.equal(form.heading, 'Sign in');
  const back = new URL(signIn, site.url).searchParams.get('return_to') ?? '';
  const afterwards = await visitor.post('/sign-in', { email, password: PASSWORD, return_to: back });
  assert.equal(afterwards.headers.get('location'), page);
  const url = leadsTo(await visitor.get(page));
  assert.equal(url.href, `${originOf(team)}/deep?x=%20&y&token=${tokenIn(site.api, url.href)}`);
});

test("the sign-in form's CSP allows redirects to that preview's host only", async () => {
  const team = await link();
  const sign = async (returnTo: string): Promise<string> => {
    const { headers } = await site.visitor().get(`/sign-in?return_to=${encodeURIComponent(returnTo)}`);
    return /form-action ([^;]*)/.exec(headers.get('content-security-policy') ?? '')?.[1] ?? '';
  };
  assert.equal(await sign(await pageOf(team)), `'self' ${originOf(team)}`);
  for (const other of [
    '/device',
    '/preview',
    '/preview?sandbox=x&port=80',
    `/preview?sandbox=${team.sandboxId}&port=80;script-src%20*`,
    `/preview?sandbox=${team.sandboxId}%20*&port=80`,
    `/previews?sandbox=${team.sandboxId}&port=80`,
    `//evil.test/preview?sandbox=${team.sandboxId}&port=80`,
  ])
    assert.equal(await sign(other), "'self'", other);
});

test('a non-member gets the same refusal for existing and deleted sandboxes, naming the account', async () => {
  const { visitor, email } = await signedIn(null);
  const team = await link();
  const page = await pageOf(team);
  const answer = await visitor.get(page);
  assert.deepEqual([answer.status, answer.heading], [403, 'You have no access to this preview']);
  assert.ok(answer.text.includes(email));
  assert.equal(answer.headers.get('location'), null);
  assert.ok(!answer.text.includes(site.api.orgId) && !answer.text.includes('First org'));
  await site.api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('id', '=', team.sandboxId)
    .execute();
  assert.equal((await visitor.get(page)).text, answer.text);
});

test('a removed member is refused', async () => {
  const { visitor, userId } = await signedIn('admin');
  const page = await pageOf(await link());
  assert.equal((await visitor.get(page)).status, 303);
  await site.api.db.deleteFrom('membership').where('user_id', '=', userId).execute();
  assert.equal((await visitor.get(page)).status, 403);
});

test('an org member sees that the sandbox is gone', async () => {
  const { visitor } = await signedIn('viewer');
  const team = await link();
  const page = await pageOf(team);
  await site.api.db.updateTable('sandbox').set({ status: 'destroying' }).where('id', '=', team.sandboxId).execute();
  const answer = await visitor.get(page);
  assert.deepEqual([answer.status, answer.heading], [404, 'This sandbox was destroyed']);
});

test('a user over the limit of redirects gets 429 with Retry-After', async () => {
  const { visitor, userId } = await signedIn('viewer');
  const page = await pageOf(await link());
  for (let redirects = 0; redirects < 300; redirects += 1)
    await site.api.signIn.throttle('preview-grant', [userKey(userId)]);
  await stopRefilling(site.api.db);
  const answer = await visitor.get(page);
  assert.deepEqual([answer.status, answer.heading], [429, 'This preview cannot be opened now']);
  assert.ok(Number(answer.headers.get('retry-after')) >= 1);
  const { visitor: other } = await signedIn('viewer');
  assert.equal((await other.get(page)).status, 303);
});

test('an invalid team link is refused before any sign-in, signed in or not', async () => {
  const { visitor } = await signedIn('owner');
  const team = await link();
  const other = await site.api.makeSandbox('ready');
  const open = await mintLink(site.api, team.sandboxId, { audience: 'public' });
  const page = (query: Record<string, string>): string =>
    `/preview?${new URLSearchParams({ link: team.token, sandbox: team.sandboxId, port: '3000', ...query }).toString()}`;
  const grant = leadsTo(await visitor.get(page({}))).searchParams.get('token') ?? '';
  site.api.secret(grant, 'a grant');
  for (const wrong of [
    page({ sandbox: other.id }),
    page({ port: '3001' }),
    page({ port: '03000' }),
    page({ sandbox: '' }),
    page({ link: '' }),
    page({ link: open.token }),
    page({ link: grant }),
    page({ link: `${team.token}x` }),
    '/preview',
    `/preview?link=${team.token}&link=${team.token}&sandbox=${team.sandboxId}&port=3000`,
  ]) {
    for (const somebody of [visitor, site.visitor()]) {
      const answer = await somebody.get(wrong);
      assert.deepEqual(
        [answer.status, answer.heading, answer.headers.get('location')],
        [410, 'This link does not work', null],
        wrong,
      );
    }
  }
});

test("the path parameter cannot leave the preview's origin", async () => {
  const { visitor } = await signedIn('member');
  const team = await link();
  const page = await pageOf(team);
  for (const [path, expected] of [
    ['//evil.test', '/'],
    ['/\\evil.test', '/'],
    ['https://evil.test/', '/'],
    ['evil.test', '/'],
    ['@evil.test', '/'],
    ['.evil.test', '/'],
    [':80@evil.test', '/'],
    ['/a#b', '/'],
    ['/a\r\nset-cookie: x=y', '/'],
    ['/a?token=bpt_old&x', '/a?x'],
    ['/a?token=mine', '/a?token=mine'],
  ] as const) {
    const url = leadsTo(await visitor.get(`${page}&path=${encodeURIComponent(path)}`));
    assert.equal(url.origin, originOf(team), path);
    const token = url.searchParams.getAll('token').at(-1) ?? '';
    assert.equal(
      url.href,
      `${originOf(team)}${expected}${expected.includes('?') ? '&' : '?'}token=${site.api.secret(token, 'a grant')}`,
    );
  }
});

test('the page accepts no POST', async () => {
  const { visitor } = await signedIn('member');
  assert.equal((await visitor.post('/preview', {})).status, 405);
});

test('no link or grant is in the log or the database', async () => {
  for (const form of ['bpt_', 'bpc_']) assert.ok(!site.log().includes(form));
  await site.api.scanSecrets();
});
