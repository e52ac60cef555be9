// Data keys of sandboxes: drawn once, sent to the host, sealed again by a rotation, deleted with
// the sandbox.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { SecretKey } from '../../../src/services/context/secret-key.ts';
import { openText, sealedPrefix, UnsealError } from '../../../src/services/context/sealed.ts';
import { dataKeyOf } from '../../../src/services/sandboxes/data-key.ts';
import { resealAll } from '../../../src/services/secrets/reseal.ts';
import { secretsState } from '../../../src/services/secrets/status.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
});
after(() => api.close());
afterEach(() => api.host.calm());

async function sealedKeys(id: string): Promise<Buffer[]> {
  const rows = await api.db.selectFrom('sandbox_data_key').selectAll().where('sandbox_id', '=', id).execute();
  return rows.map(({ key_sealed: sealed }) => sealed);
}

async function makeAwake(): Promise<string> {
  const { body } = await settled(api, () =>
    api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, { body: { agent: 'agent_one', projectId: api.projectId } }),
  );
  assert.equal(body.sandbox.status, 'ready');
  return body.sandbox.id;
}

async function order(id: string, verb: 'sleep' | 'wake', status: string): Promise<Answer['body']> {
  const answer = await settled(api, () => api.call('POST', `/v1/sandboxes/${id}/${verb}`));
  const { sandbox } = (await api.call('GET', `/v1/sandboxes/${id}`)).body;
  assert.equal(sandbox.status, status, JSON.stringify(answer.body));
  return sandbox;
}

const sentKeys = (id: string): string[] =>
  api.host.bodies.flatMap((body) =>
    body.id === id && body.dataKey !== undefined ? [api.secret(body.dataKey, 'a data key')] : [],
  );

test('each create, sleep and wake brings the host the same key, which no log or table has', async () => {
  const [one, other] = [await makeAwake(), await makeAwake()];
  await order(one, 'sleep', 'stopped');
  await order(one, 'wake', 'ready');
  const sent = sentKeys(one);
  assert.equal(sent.length, 3);
  assert.equal(new Set([...sent, ...sentKeys(other)]).size, 2);
  assert.match(sent[0] ?? '', /^[\w-]{43}$/);
  await api.scanSecrets();
});

test('a sandbox of an earlier release gets a key with its next sleep', async () => {
  const id = await makeAwake();
  await api.db.deleteFrom('sandbox_data_key').where('sandbox_id', '=', id).execute();
  await order(id, 'sleep', 'stopped');
  assert.equal((await sealedKeys(id)).length, 1);
  assert.equal(sentKeys(id).at(-1), await dataKeyOf(api.context, id));
});

test('the key is deleted with the sandbox, and none is drawn afterwards', async () => {
  const id = await makeAwake();
  assert.equal((await sealedKeys(id)).length, 1);
  await settled(api, () => api.call('POST', `/v1/sandboxes/${id}/destroy`));
  assert.deepEqual(await sealedKeys(id), []);
  assert.equal(await dataKeyOf(api.context, id), undefined);
  assert.deepEqual(await sealedKeys(id), []);
});

test('ten replicas that need the first key at once agree on one', async () => {
  const { id } = await api.makeSandbox('stopped');
  const keys = await Promise.all(Array.from({ length: 10 }, () => dataKeyOf(api.context, id)));
  assert.equal(new Set(keys).size, 1);
});

test('a rotation seals the keys again, without changing them', async () => {
  const { id } = await api.makeSandbox('stopped');
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const key = await dataKeyOf({ db: api.db, secretKey: new SecretKey(old) }, id);
  await resealAll({ db: api.db, secretKey: new SecretKey(fresh, old) }, new AbortController().signal);
  assert.equal(await dataKeyOf({ db: api.db, secretKey: new SecretKey(fresh) }, id), key);
  await assert.rejects(dataKeyOf({ db: api.db, secretKey: new SecretKey(old) }, id), UnsealError);
});

test('after a rotation and its retirement no key opens the copied row of a destroyed sandbox', async () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const { id } = await api.makeSandbox('stopped');
  await dataKeyOf({ db: api.db, secretKey: new SecretKey(old) }, id);
  const [copied] = await sealedKeys(id);
  assert.ok(copied !== undefined);
  const open = (secretKey: SecretKey, sealed = copied): string =>
    openText(secretKey.keysFor('sandbox-data'), id, sealed);
  await settled(api, () => api.call('POST', `/v1/sandboxes/${id}/destroy`));
  assert.match(open(new SecretKey(old)), /^[\w-]{43}$/, 'before the rotation the copy opens');

  const rotated = new SecretKey(fresh, old);
  await resealAll({ db: api.db, secretKey: rotated }, new AbortController().signal);
  assert.match(open(rotated), /^[\w-]{43}$/, 'before the retirement the copy opens');
  const { secretKeys } = await secretsState(api.db, rotated, []);
  assert.equal(secretKeys[1]?.values, 0, 'no row keeps the former key');

  const retired = new SecretKey(fresh);
  assert.throws(() => open(retired), UnsealError);
  const renamed = Buffer.concat([sealedPrefix(retired.keysFor('sandbox-data')[0].id), copied.subarray(5)]);
  assert.throws(() => open(retired, renamed), UnsealError);
});

test('without its secret key a VM can sleep, and its wake fails with the sandbox stopped', async () => {
  const id = await makeAwake();
  const [sealed] = await sealedKeys(id);
  assert.ok(sealed);
  await api.db
    .updateTable('sandbox_data_key')
    .set({ key_sealed: Buffer.concat([Buffer.of(2, 0, 0, 0, 0), sealed.subarray(5)]) })
    .where('sandbox_id', '=', id)
    .execute();
  await order(id, 'sleep', 'stopped');
  assert.equal(sentKeys(id).length, 1);
  const { statusReason } = await order(id, 'wake', 'stopped');
  assert.match(
    statusReason.message,
    /^the key of its disk cannot be decrypted\. The operator must restore the secret key$/,
  );
  await api.db.updateTable('sandbox_data_key').set({ key_sealed: sealed }).where('sandbox_id', '=', id).execute();
  await order(id, 'wake', 'ready');
});
