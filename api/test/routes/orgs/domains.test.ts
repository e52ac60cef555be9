// Mail domains of orgs: claims, proofs by a TXT record, and their limits.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DOMAIN_CHECKS_PER_HOUR, DOMAINS_PER_ORG } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { insertMembership } from '../../../src/store/people/identity.ts';
import { signInAs, startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';
import { stopRefilling } from '../../sign-in/client.ts';
import { makeDomainRow, newDomainName } from '../../world/people-rows.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

interface Owner {
  orgId: string;
  token: string;
}
const newOwner = async (): Promise<Owner> => {
  const { orgId, userId } = await api.makeOrg();
  return { orgId, token: (await signInAs(api.db, userId)).token };
};
const claim = ({ orgId, token }: Owner, domain: string): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${orgId}/domains`, { token, body: { domain } });
const verify = ({ orgId, token }: Owner, id: string): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${orgId}/domains/${id}/verify`, { token });
const remove = ({ orgId, token }: Owner, id: string): Promise<Answer> =>
  api.call('DELETE', `/v1/orgs/${orgId}/domains/${id}`, { token });
const domainsOf = async ({ orgId, token }: Owner): Promise<{ domain: string; verified: boolean }[]> =>
  (await api.call('GET', `/v1/orgs/${orgId}/sso`, { token })).body.sso.domains;
const codeOf = ({ status, body }: Answer): unknown => [status, body.error?.code];
/** Claims the domain and publishes its record beside those of others; returns the id. */
async function claimAndPublish(owner: Owner, domain: string): Promise<string> {
  const { id, record } = (await claim(owner, domain)).body.domain;
  api.txtRecords.set(record.name, [...(api.txtRecords.get(record.name) ?? []), record.value]);
  return id;
}

test('a claim names its record, is not proven without it, and is proven with it', async () => {
  const owner = await newOwner();
  const name = newDomainName();
  const { status, body } = await claim(owner, name.toUpperCase());
  assert.deepEqual([status, body.domain.domain, body.domain.verified], [201, name, false]);
  const { id, record } = body.domain;
  assert.equal(record.name, `_berth-challenge.${name}`);
  assert.match(record.value, /^berth-domain-verification=[0-9a-f]{40}$/);
  const missing = await verify(owner, id);
  assert.deepEqual(codeOf(missing), [409, 'domain_not_verified']);
  assert.ok(missing.body.error.message.includes(record.name) && missing.body.error.message.includes(record.value));
  for (const records of [[''], [`${record.value}x`], [record.value.toUpperCase()], ['berth-domain-verification=']]) {
    api.txtRecords.set(record.name, records);
    assert.deepEqual(codeOf(await verify(owner, id)), [409, 'domain_not_verified'], String(records));
  }
  api.txtRecords.set(name, [record.value]);
  assert.deepEqual(codeOf(await verify(owner, id)), [409, 'domain_not_verified'], 'a record of the domain itself');
  api.txtRecords.set(record.name, ['other', record.value]);
  const proven = await verify(owner, id);
  assert.deepEqual([proven.status, proven.body.domain.verified, proven.body.domain.expiresAt], [200, true, null]);
  api.txtRecords.delete(record.name);
  assert.equal((await verify(owner, id)).status, 200, 'a proof lasts without the record');
  assert.deepEqual(
    (await domainsOf(owner)).map(({ domain, verified }) => [domain, verified]),
    [[name, true]],
  );
});

test('of two orgs that prove a domain at once one gets it; the other learns so by its proof only', async () => {
  const owners = [await newOwner(), await newOwner()];
  const name = newDomainName();
  const ids = await Promise.all(owners.map((owner) => claimAndPublish(owner, name)));
  const answers = await Promise.all(owners.map((owner, index) => verify(owner, ids[index] ?? '')));
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 409],
  );
  assert.deepEqual(
    answers.flatMap(({ status, body }) => (status === 409 ? [body.error.code] : [])),
    ['domain_taken'],
  );
  const stranger = await newOwner();
  const { status, body } = await claim(stranger, name);
  assert.deepEqual([status, body.domain.verified], [201, false], 'a claim discloses no proof of others');
  assert.deepEqual(codeOf(await verify(stranger, body.domain.id)), [409, 'domain_not_verified']);
});

test("another org's record proves nothing, and its claim is unreachable", async () => {
  const [victim, thief] = [await newOwner(), await newOwner()];
  const name = newDomainName();
  const id = await claimAndPublish(victim, name);
  const own = (await claim(thief, name)).body.domain.id;
  assert.deepEqual(codeOf(await verify(thief, own)), [409, 'domain_not_verified']);
  for (const call of [verify, remove]) assert.deepEqual(codeOf(await call(thief, id)), [403, 'org_access_denied']);
  assert.equal((await verify(victim, id)).status, 200);
});

test('an expired claim blocks nobody, proves nothing and is replaced', async () => {
  const [late, other] = [await newOwner(), await newOwner()];
  const row = await makeDomainRow(api.db, { orgId: late.orgId, state: 'expired' });
  api.txtRecords.set(`_berth-challenge.${row.domain}`, [row.challenge]);
  assert.deepEqual(codeOf(await verify(late, row.id)), [404, 'domain_not_found']);
  assert.deepEqual(codeOf(await remove(late, row.id)), [404, 'domain_not_found']);
  assert.deepEqual(await domainsOf(late), []);
  assert.equal((await verify(other, await claimAndPublish(other, row.domain))).status, 200);
  const again = (await claim(late, row.domain)).body.domain;
  assert.notEqual(again.record.value, row.challenge);
});

test('a claim that expires or is removed during its DNS query is not proven', async () => {
  const owner = await newOwner();
  const find = api.context.findTxtRecords;
  const change = {
    expired: (id: string) =>
      sql`update org_domain set expires_at = now() - interval '1 second' where id = ${id}`.execute(api.db),
    removed: (id: string) => api.db.deleteFrom('org_domain').where('id', '=', id).execute(),
  };
  for (const [what, run] of Object.entries(change)) {
    const id = await claimAndPublish(owner, newDomainName());
    api.context.findTxtRecords = async (name) => {
      await run(id);
      return await find(name);
    };
    try {
      assert.deepEqual(codeOf(await verify(owner, id)), [404, 'domain_not_found'], what);
    } finally {
      api.context.findTxtRecords = find;
    }
  }
});

test('a DNS server that does not respond is named and proves nothing', async () => {
  const owner = await newOwner();
  const id = await claimAndPublish(owner, newDomainName());
  const find = api.context.findTxtRecords;
  api.context.findTxtRecords = () => Promise.reject(Object.assign(new Error('x'), { code: 'ETIMEOUT' }));
  try {
    const answer = await verify(owner, id);
    assert.deepEqual(codeOf(answer), [409, 'domain_not_verified']);
    assert.match(answer.body.error.message, /^DNS did not respond/);
  } finally {
    api.context.findTxtRecords = find;
  }
});

test('an org has at most 10 domains, also concurrently; a repeated claim is the same', async () => {
  const owner = await newOwner();
  const answers = await Promise.all(Array.from({ length: DOMAINS_PER_ORG + 5 }, () => claim(owner, newDomainName())));
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, DOMAINS_PER_ORG);
  for (const answer of answers.filter(({ status }) => status !== 201)) {
    assert.deepEqual(codeOf(answer), [409, 'domain_limit']);
    assert.match(answer.body.error.message, /^the org has 10 domains, the maximum/);
  }
  const { domain, id } = made[0]?.body.domain ?? {};
  assert.deepEqual((await claim(owner, domain)).body.domain, made[0]?.body.domain);
  assert.equal((await remove(owner, id)).status, 200);
  assert.equal((await claim(owner, newDomainName())).status, 201);
});

test('an org queries DNS at most 20 times an hour, with any number of claims; others go on', async () => {
  const [owner, other] = [await newOwner(), await newOwner()];
  let queries = 0;
  const find = api.context.findTxtRecords;
  api.context.findTxtRecords = async (name) => {
    queries += 1;
    return await find(name);
  };
  try {
    const ids = [
      (await claim(owner, newDomainName())).body.domain.id,
      (await claim(owner, newDomainName())).body.domain.id,
    ];
    for (let check = 0; check < DOMAIN_CHECKS_PER_HOUR; check += 1) {
      await verify(owner, ids[check % 2]);
      await stopRefilling(api.db);
    }
    const refused = await verify(owner, ids[0]);
    assert.deepEqual(codeOf(refused), [429, 'rate_limited']);
    assert.match(refused.body.error.message, /^an org can check its domains 20 times an hour/);
    assert.equal(queries, DOMAIN_CHECKS_PER_HOUR);
    assert.equal((await verify(other, await claimAndPublish(other, newDomainName()))).status, 200);
  } finally {
    api.context.findTxtRecords = find;
  }
});

test('only owners claim, prove and remove domains; claims and removals need a recent sign-in', async () => {
  const owner = await newOwner();
  const id = await claimAndPublish(owner, newDomainName());
  for (const role of ['admin', 'member', 'operator', 'viewer'] as const) {
    const member: TestSession = await api.makeSession({ role: null });
    await insertMembership(api.db, { orgId: owner.orgId, userId: member.userId, role });
    const as = { orgId: owner.orgId, token: member.token };
    for (const answer of [await claim(as, newDomainName()), await verify(as, id), await remove(as, id)])
      assert.deepEqual(codeOf(answer), [403, 'permission_denied'], role);
  }
  await sql`update "session" set "authenticatedAt" = now() - interval '1 hour'`.execute(api.db);
  assert.deepEqual(codeOf(await claim(owner, newDomainName())), [403, 'reauthentication_required']);
  assert.deepEqual(codeOf(await remove(owner, id)), [403, 'reauthentication_required']);
});
