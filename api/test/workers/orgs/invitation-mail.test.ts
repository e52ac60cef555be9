// The durable step that mails an invitation: killed at every point, with a mail server that is
// down, refuses or is silent, and for invitations that are no longer pending. Replicas are separate
// processes; their mail goes to an outbox or to a real SMTP server.
import assert from 'node:assert/strict';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import type { MailConfig } from '../../../src/config/config.ts';
import { freePort } from '../../../../protocol/test/free-port.ts';
import { linkTokenSha256 } from '../../../src/services/access/one-time-links.ts';
import type { InvitationRow } from '../../../src/store/database/schema.ts';
import { CRASH_POINTS } from '../../../src/workers/steps/crash-point.ts';
import { pointsOf } from '../../../../os/test/crash-points.ts';
import { MAIL_RETRY_POLICY } from '../../../src/workers/orgs/invitation-mail.ts';
import { startMailServer, tokenInContent, type MailServer } from '../../mail/mail-server.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { Replica, type ReplicaOptions } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

const FAST_RETRIES = { firstPauseMs: 20, longestPauseMs: 100, giveUpAfterMs: 3_600_000 };

let world: World;
before(async () => {
  world = await openWorld();
  // The row of a finished step is deleted.
  await sql`create table step_history (content text)`.execute(world.db);
  await sql`
    create function note_step() returns trigger language plpgsql as
      'begin insert into step_history values (new::text); return new; end'`.execute(world.db);
  await sql`
    create trigger note_step after insert or update on durable_step
    for each row execute function note_step()`.execute(world.db);
});
after(() => world.close());
beforeEach(() => rm(world.outbox, { recursive: true, force: true }));

const replicas: Replica[] = [];
const servers: MailServer[] = [];
afterEach(async () => {
  for (const replica of replicas.splice(0)) await replica.kill();
  for (const server of servers.splice(0)) await server.close();
  // Steps left by a test must not affect the next.
  await world.db.deleteFrom('durable_step').execute();
  await world.db.deleteFrom('invitation').execute();
});

async function start(changed: Partial<ReplicaOptions> = {}, crashAt?: string): Promise<Replica> {
  const replica = await Replica.start({ ...world.replica, mailRetryPolicy: FAST_RETRIES, ...changed }, crashAt);
  replicas.push(replica);
  return replica;
}

async function startServer(...args: Parameters<typeof startMailServer>): Promise<MailServer> {
  const server = await startMailServer(...args);
  servers.push(server);
  return server;
}

const smtpTo = (port: number): MailConfig => ({
  kind: 'smtp',
  url: `smtp://127.0.0.1:${port}`,
  from: 'Berth <berth@example.test>',
});

/** Text of a mail without its transfer encoding. */
const readableOf = (content = ''): string =>
  content
    .replaceAll(/=\r\n/g, '')
    .replaceAll(/(=[0-9A-F]{2})+/g, (bytes) => Buffer.from(bytes.replaceAll('=', ''), 'hex').toString())
    .replaceAll('\r\n', '\n');

async function rowOf(id: string): Promise<InvitationRow> {
  return await world.db.selectFrom('invitation').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
}

async function untilSent(id: string): Promise<InvitationRow> {
  await untilTrue('the mail is sent', async () => (await rowOf(id)).sent_at !== null);
  return await rowOf(id);
}

async function untilStepEnded(id: string): Promise<void> {
  await untilTrue('the step ends', async () => {
    const rows = await world.db
      .selectFrom('durable_step')
      .select('id')
      .where('id', '=', `invitation-mail:${id}`)
      .execute();
    return rows.length === 0;
  });
}

/** Tokens in the outbox, oldest mail first. */
async function mailedTokens(): Promise<string[]> {
  const names = (await readdir(world.outbox).catch(() => [])).filter((name) => name.endsWith('.eml')).toSorted();
  const contents = await Promise.all(names.map((name) => readFile(join(world.outbox, name), 'utf8')));
  return contents.map((content) => tokenInContent(content) ?? assert.fail('a mail without a link'));
}

const countSent = async (id: string): Promise<number> => {
  const rows = await world.db
    .selectFrom('activity')
    .select('id')
    .where('subject_id', '=', id)
    .where('kind', '=', 'invitation_sent')
    .execute();
  return rows.length;
};

/** Every version of every durable step's row, as text. */
async function durableRecord(): Promise<string> {
  const { rows } = await sql<{ content: string }>`select content from step_history`.execute(world.db);
  return rows.map(({ content }) => content).join('\n');
}

test('an invitation is mailed once, and its link alone has the token whose hash is stored', async () => {
  const replica = await start();
  const { id } = await replica.ask('invite', { email: 'new@example.test' });
  const row = await untilSent(id);
  await untilStepEnded(id);
  const [token = '', ...more] = await mailedTokens();
  assert.deepEqual(more, []);
  assert.deepEqual(row.token_sha256, linkTokenSha256(token));
  assert.equal(await countSent(id), 1);
  const record = await durableRecord();
  assert.ok(record.includes(id));
  assert.ok(!record.includes(token) && !record.includes(Buffer.from(token).toString('base64')));
  const feed = await world.db.selectFrom('activity').select('details').where('subject_id', '=', id).execute();
  assert.ok(!JSON.stringify(feed).includes(token));
  assert.ok(!replica.log.includes(token));
});

test('a mail names inviter, org, role, recipient and expiry, as text and HTML', async () => {
  const server = await startServer();
  await world.db.updateTable('org').set({ name: 'Tom & <b>Co</b>\nX' }).where('id', '=', world.replica.orgId).execute();
  const replica = await start({ mail: smtpTo(server.port) });
  const { id } = await replica.ask('invite', { email: 'new@example.test' });
  const { expires_at: expiresAt } = await untilSent(id);
  const [mail] = server.received;
  assert.deepEqual(mail?.to, ['new@example.test']);
  const readable = readableOf(mail?.content);
  const month = expiresAt.toLocaleString('en-GB', { month: 'long', timeZone: 'UTC' });
  const until = `${expiresAt.getUTCDate()} ${month} ${expiresAt.getUTCFullYear()}`;
  const [, text = '', html = ''] = readable.split(/^Content-Type: text\/(?:plain|html).*$/m);
  assert.match(text, /^Owner invites you to the org “Tom & <b>Co<\/b> X” as a member\.$/m);
  assert.match(text, new RegExp(`^To accept, open this link before ${until} at \\d\\d:\\d\\d UTC:$`, 'm'));
  assert.match(text, /^http:\/\/berth\.example\.test\/invitation\?token=[\w-]{43}$/m);
  assert.match(html, /<p>Owner invites you to the org “Tom &amp; &lt;b&gt;Co&lt;\/b&gt; X” as a member\.<\/p>/);
  assert.match(html, /<a href="http:\/\/berth\.example\.test\/invitation\?token=[\w-]{43}">/);
  const subject = /^Subject: (.*(?:\n .*)*)$/m.exec(readable)?.[1] ?? '';
  assert.match(subject.replaceAll('_', ' '), /Owner invites you to the org/);
  await world.db.updateTable('org').set({ name: 'Org' }).where('id', '=', world.replica.orgId).execute();
});

for (const [whose, table] of [
  ['org', 'org'],
  ['inviter', 'user'],
] as const) {
  test(`a name of the ${whose} in a mail is short and becomes no link`, async (context) => {
    const server = await startServer();
    const rename = async (name: string): Promise<void> =>
      void (await sql`update ${sql.table(table)} set name = ${name}`.execute(world.db));
    await rename(`Pay at https://evil.example/now or mail a@evil.example ${'👩‍🔧'.repeat(30)}`);
    context.after(() => rename(table === 'org' ? 'Org' : 'Owner'));
    const replica = await start({ mail: smtpTo(server.port) });
    const { id } = await replica.ask('invite', { email: 'new@example.test' });
    await untilSent(id);
    const readable = readableOf(server.received[0]?.content);
    assert.match(readable, /^[^<]*\bPay at https:\u2060\/\/evil\.\u2060example\/now or mail…(”| invites)/m);
    assert.doesNotMatch(readable, /evil\.example|https:\/\/evil/);
  });
}

for (const point of pointsOf(CRASH_POINTS, 'invitation-mail:')) {
  test(`a replica killed at ${point} loses no mail: the newest has the only valid link, recorded once`, async () => {
    const killed = await start({}, point);
    await killed
      .ask('invite', { email: 'new@example.test' })
      .catch((error: Error) => assert.match(error.message, /SIGKILL/));
    assert.equal(await killed.ended, 'SIGKILL');
    await start();
    const rows = await world.db.selectFrom('invitation').selectAll().execute();
    if (point === 'invitation-mail:enqueued') {
      // Killed before the commit: nothing was acknowledged or stored.
      assert.deepEqual([rows.length, await mailedTokens()], [0, []]);
      return;
    }
    const id = rows[0]?.id ?? '';
    const row = await untilSent(id);
    await untilStepEnded(id);
    const tokens = await mailedTokens();
    assert.equal(tokens.length, ['invitation-mail:sent', 'invitation-mail:noted-written'].includes(point) ? 2 : 1);
    assert.equal(new Set(tokens).size, tokens.length);
    assert.deepEqual(row.token_sha256, linkTokenSha256(tokens.at(-1) ?? ''));
    assert.equal(await countSent(id), 1);
    const record = await durableRecord();
    for (const token of tokens) assert.ok(!record.includes(token));
  });
}

test('a mail is retried until its server is up, also by another replica', async () => {
  const port = await freePort();
  const first = await start({ mail: smtpTo(port) });
  const { id } = await first.ask('invite', { email: 'new@example.test' });
  await untilTrue('it was tried', async () => (await rowOf(id)).token_sha256 !== null);
  await first.kill();
  assert.equal((await rowOf(id)).sent_at, null);
  const second = await start({ mail: smtpTo(port) });
  await untilTrue('the other tries', () => second.log.includes('ECONNREFUSED'));
  assert.doesNotMatch(second.log, /new@example\.test|token=/);
  const server = await startServer({}, port);
  const row = await untilSent(id);
  assert.equal(server.received.length, 1);
  assert.deepEqual(row.token_sha256, linkTokenSha256(tokenInContent(server.received[0]?.content ?? '') ?? ''));
});

test('each attempt has its own token, and only that of the accepted mail works', async () => {
  const tokens: (string | undefined)[] = [];
  const server = await startServer({
    onData: (stream, _session, done) => {
      let content = '';
      stream.on('data', (chunk: Buffer) => (content += chunk.toString()));
      stream.on('end', () => {
        tokens.push(tokenInContent(content));
        done(tokens.length < 4 ? Object.assign(new Error('try later'), { responseCode: 451 }) : null);
      });
    },
  });
  const replica = await start({ mail: smtpTo(server.port) });
  const { id } = await replica.ask('invite', { email: 'new@example.test' });
  const row = await untilSent(id);
  assert.deepEqual([tokens.length, new Set(tokens).size], [4, 4]);
  assert.deepEqual(row.token_sha256, linkTokenSha256(tokens[3] ?? ''));
  assert.equal(await countSent(id), 1);
});

test('an undeliverable mail is abandoned and logged; the invitation stays and can be resent', async () => {
  const port = await freePort();
  const replica = await start({ mail: smtpTo(port), mailRetryPolicy: { ...FAST_RETRIES, giveUpAfterMs: 0 } });
  const { id } = await replica.ask('invite', { email: 'new@example.test' });
  await untilStepEnded(id);
  const row = await rowOf(id);
  assert.deepEqual([row.sent_at, row.revoked_at, await countSent(id)], [null, null, 0]);
  await untilTrue('the log says so', () => replica.log.includes('giving up; invite again'));
  const server = await startServer({}, port);
  const again = await replica.ask('invite', { email: 'new@example.test' });
  await untilSent(again.id);
  assert.equal(server.received.length, 1);
});

test('by default a mail is retried for 24 hours, pausing from two seconds to half an hour', () => {
  assert.deepEqual(MAIL_RETRY_POLICY, { firstPauseMs: 2_000, longestPauseMs: 1_800_000, giveUpAfterMs: 86_400_000 });
});

for (const [what, change] of [
  ['revoked', { revoked_at: sql<Date>`now()` }],
  ['accepted', { accepted_at: sql<Date>`now()` }],
  ['out of time', { expires_at: sql<Date>`now()` }],
] as const) {
  test(`an invitation that is ${what} before its mail is sent is not mailed any more`, async () => {
    const port = await freePort();
    const replica = await start({ mail: smtpTo(port) });
    const { id } = await replica.ask('invite', { email: 'new@example.test' });
    await untilTrue('it was tried', async () => (await rowOf(id)).token_sha256 !== null);
    await world.db.updateTable('invitation').set(change).where('id', '=', id).execute();
    await untilStepEnded(id);
    const server = await startServer({}, port);
    const marker = await replica.ask('invite', { email: 'other@example.test' });
    await untilSent(marker.id);
    assert.deepEqual(
      server.received.map(({ to }) => to),
      [['other@example.test']],
    );
    assert.equal(await countSent(id), 0);
  });
}

test('a new invitation to an address with a waiting mail replaces that mail', async () => {
  const port = await freePort();
  const replica = await start({ mail: smtpTo(port) });
  const older = await replica.ask('invite', { email: 'new@example.test' });
  const newer = await replica.ask('invite', { email: 'new@example.test' });
  await untilStepEnded(older.id);
  const server = await startServer({}, port);
  const row = await untilSent(newer.id);
  assert.equal(server.received.length, 1);
  assert.deepEqual(row.token_sha256, linkTokenSha256(tokenInContent(server.received[0]?.content ?? '') ?? ''));
});

test('a replica that stops while the mail server is silent leaves the mail to the next', async () => {
  const silent = await startServer({ onConnect: () => undefined });
  const first = await start({ mail: smtpTo(silent.port) });
  const { id } = await first.ask('invite', { email: 'new@example.test' });
  await untilTrue('it dials', () => silent.connections() === 1);
  await first.stop();
  await untilTrue('the connection is closed', () => silent.connections() === 0);
  const server = await startServer();
  await start({ mail: smtpTo(server.port) });
  await untilSent(id);
  assert.equal(server.received.length, 1);
});

test('a mail that was claimed and never started starts after a while', async () => {
  const server = await startServer();
  const replica = await start({ mail: smtpTo(server.port) });
  const { id } = await replica.ask('invite', { email: 'new@example.test' });
  await sql`
    update durable_step set claimed_by = ${replica.executorId}
    where id = ${`invitation-mail:${id}`} and claimed_by is null`.execute(world.db);
  await untilSent(id);
  assert.equal(server.received.length, 1);
});
