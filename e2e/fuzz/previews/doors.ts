// Sets up the previews of a run: the app in a sandbox, and links to it and elsewhere that are
// valid, revoked, expired and dead.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { call, exec, type Caller } from '../../world/client.ts';
import { APP_FOLDER, PREVIEW_APP } from './app.ts';
import type { FuzzReport } from '../asking/report.ts';
import { exchangeBytes } from './visiting.ts';
import type { Door, PreviewDoors } from '../asking/visit.ts';

/** Port of the discard protocol (RFC 863), which no sandbox listens on. */
const SILENT_PORT = 9;
const EXPIRY_DEADLINE_MS = 30_000;
const POLL_MS = 100;

interface Sandboxes {
  awake: string;
  /** Two awake sandboxes, which are put to sleep and destroyed after this. */
  stopped: string;
  deleted: string;
}

export async function makeDoors(
  caller: Caller,
  { awake, stopped, deleted }: Sandboxes,
  seed: string,
): Promise<PreviewDoors> {
  const word = createHash('sha256').update(`app of ${seed}`).digest('hex').slice(0, 16);
  const port = await startApp(caller, awake, word);
  const [app, spare, revoked] = [
    await makeLink(caller, awake, { port }),
    await makeLink(caller, awake, { port }),
    await makeLink(caller, awake, { port }),
  ];
  for (const link of [app, spare, revoked]) link.door.cookie = await cookieOf(caller, link.door);
  const answer = await call(caller, 'DELETE', `/v1/sandboxes/${awake}/previews/${revoked.id}`);
  if (answer.status !== 200) throw new Error(`a link was not revoked: ${answer.status}`);
  const expired = await makeLink(caller, awake, { port, expiresInSeconds: 1 });
  await untilAnswered(caller, expired.door, 410);
  await untilAnswered(caller, revoked.door, 410);
  return {
    previewHost: app.door.host.slice(app.door.host.indexOf('.') + 1),
    sandboxId: awake,
    word,
    app: app.door,
    spare: spare.door,
    revoked: revoked.door,
    expired: expired.door,
    team: (await makeLink(caller, awake, { port, audience: 'team' })).door,
    silent: (await makeLink(caller, awake, { port: SILENT_PORT })).door,
    asleep: (await makeLink(caller, stopped, { port })).door,
    gone: (await makeLink(caller, deleted, { port })).door,
  };
}

/** Preview address of a link's URL. */
export function doorOf(url: string): Door {
  const { host, searchParams } = new URL(url);
  return { host, token: searchParams.get('token') ?? '', cookie: null };
}

/** Checks everything the app received during the run for forbidden content. */
export async function judgeNotes(caller: Caller, doors: PreviewDoors, report: FuzzReport): Promise<void> {
  const { stdout } = await exec(caller, doors.sandboxId, `cat ${APP_FOLDER}/seen`);
  const secrets = secretsOf(doors);
  for (const line of stdout.split('\n')) {
    const secret = secrets.find((one) => line.includes(one));
    if (secret !== undefined) report.found('wrong', `the app was given a secret: ${line.slice(0, 100)}`);
    if (line.includes('/smuggled')) report.found('wrong', 'the app was given a request that nobody sent');
  }
}

/** Secrets that no app may see: those of every link except the spare one. */
export function secretsOf(doors: PreviewDoors): string[] {
  return [doors.app, doors.revoked, doors.expired, doors.team, doors.silent, doors.asleep, doors.gone].flatMap(
    ({ token, cookie }) => (cookie === null ? [token] : [token, cookie]),
  );
}

async function startApp(caller: Caller, sandboxId: string, word: string): Promise<number> {
  const written = await call(caller, 'PUT', `/v1/sandboxes/${sandboxId}/file`, {
    path: `${APP_FOLDER}/app.py`,
    content: PREVIEW_APP,
  });
  if (written.status !== 200) throw new Error(`the app could not be written: ${JSON.stringify(written.body)}`);
  const start = `cd ${APP_FOLDER} && touch seen && (setsid python3 app.py ${word} </dev/null >app.log 2>&1 &)`;
  const { stdout } = await exec(
    caller,
    sandboxId,
    `${start}; for i in $(seq 600); do [ -s port ] && break; sleep 0.1; done; cat port || cat app.log`,
    90,
  );
  const port = Number(stdout);
  if (!(port > 0)) throw new Error(`the app does not listen: ${stdout}`);
  return port;
}

async function makeLink(
  caller: Caller,
  sandboxId: string,
  fields: Record<string, unknown>,
): Promise<{ id: string; door: Door }> {
  const answer = await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/previews`, { audience: 'public', ...fields });
  if (answer.status !== 201) throw new Error(`no link: ${JSON.stringify(answer.body)}`);
  const { id, url } = (answer.body as { preview: { id: string; url: string } }).preview;
  return { id, door: doorOf(url) };
}

async function statusAndCookie(
  caller: Caller,
  { host, token }: Door,
): Promise<{ status: number; cookie: string | null }> {
  const bytes = Buffer.from(`GET /?token=${token} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  const { answers } = await exchangeBytes(caller.url, { pieces: [bytes], methods: ['GET'] });
  const cookies = answers[0]?.headers.get('set-cookie') ?? [];
  return { status: answers[0]?.status ?? 0, cookie: /^berth_preview=([^;]+)/.exec(cookies.join('\n'))?.[1] ?? null };
}

async function cookieOf(caller: Caller, door: Door): Promise<string> {
  const { status, cookie } = await statusAndCookie(caller, door);
  if (cookie === null) throw new Error(`a link was answered ${status}, without a cookie`);
  return cookie;
}

async function untilAnswered(caller: Caller, door: Door, wanted: number): Promise<void> {
  const deadline = Date.now() + EXPIRY_DEADLINE_MS;
  for (;;) {
    const { status } = await statusAndCookie(caller, door);
    if (status === wanted) return;
    if (Date.now() > deadline) throw new Error(`a link is answered ${status} rather than ${wanted}`);
    await delay(POLL_MS);
  }
}
