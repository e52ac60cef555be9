// Sets up the previews of a run: the app in a sandbox, and links to it and elsewhere that are
// valid, revoked, expired and dead.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { call, exec, type Caller } from '../../world/client.ts';
import { APP_FOLDER, PREVIEW_APP } from './app.ts';
import type { FuzzReport } from '../core/report.ts';
import { exchangeBytes } from './client.ts';
import type { PreviewEndpoint, PreviewEndpoints } from '../core/preview-request.ts';

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

export async function createEndpoints(
  caller: Caller,
  { awake, stopped, deleted }: Sandboxes,
  seed: string,
): Promise<PreviewEndpoints> {
  const marker = createHash('sha256').update(`app of ${seed}`).digest('hex').slice(0, 16);
  const port = await startApp(caller, awake, marker);
  const [app, spare, revoked] = [
    await makeLink(caller, awake, { port }),
    await makeLink(caller, awake, { port }),
    await makeLink(caller, awake, { port }),
  ];
  for (const link of [app, spare, revoked]) link.endpoint.cookie = await cookieOf(caller, link.endpoint);
  const answer = await call(caller, 'DELETE', `/v1/sandboxes/${awake}/previews/${revoked.id}`);
  if (answer.status !== 200) throw new Error(`a link was not revoked: ${answer.status}`);
  const expired = await makeLink(caller, awake, { port, expiresInSeconds: 1 });
  await untilAnswered(caller, expired.endpoint, 410);
  await untilAnswered(caller, revoked.endpoint, 410);
  return {
    previewHost: app.endpoint.host.slice(app.endpoint.host.indexOf('.') + 1),
    sandboxId: awake,
    marker,
    app: app.endpoint,
    spare: spare.endpoint,
    revoked: revoked.endpoint,
    expired: expired.endpoint,
    team: (await makeLink(caller, awake, { port, audience: 'team' })).endpoint,
    silent: (await makeLink(caller, awake, { port: SILENT_PORT })).endpoint,
    asleep: (await makeLink(caller, stopped, { port })).endpoint,
    gone: (await makeLink(caller, deleted, { port })).endpoint,
  };
}

/** Preview address of a link's URL. */
export function endpointOf(url: string): PreviewEndpoint {
  const { host, searchParams } = new URL(url);
  return { host, token: searchParams.get('token') ?? '', cookie: null };
}

/** Checks everything the app received during the run for forbidden content. */
export async function checkReceived(caller: Caller, endpoints: PreviewEndpoints, report: FuzzReport): Promise<void> {
  const { stdout } = await exec(caller, endpoints.sandboxId, `cat ${APP_FOLDER}/seen`);
  const secrets = secretsOf(endpoints);
  for (const line of stdout.split('\n')) {
    const secret = secrets.find((one) => line.includes(one));
    if (secret !== undefined) report.found('wrong', `the app was given a secret: ${line.slice(0, 100)}`);
    if (line.includes('/smuggled')) report.found('wrong', 'the app was given a request that nobody sent');
  }
}

/** Secrets that no app may see: those of every link except the spare one. */
export function secretsOf(endpoints: PreviewEndpoints): string[] {
  return [
    endpoints.app,
    endpoints.revoked,
    endpoints.expired,
    endpoints.team,
    endpoints.silent,
    endpoints.asleep,
    endpoints.gone,
  ].flatMap(({ token, cookie }) => (cookie === null ? [token] : [token, cookie]));
}

async function startApp(caller: Caller, sandboxId: string, marker: string): Promise<number> {
  const written = await call(caller, 'PUT', `/v1/sandboxes/${sandboxId}/file`, {
    path: `${APP_FOLDER}/app.py`,
    content: PREVIEW_APP,
  });
  if (written.status !== 200) throw new Error(`the app could not be written: ${JSON.stringify(written.body)}`);
  const start = `cd ${APP_FOLDER} && touch seen && (setsid python3 app.py ${marker} </dev/null >app.log 2>&1 &)`;
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
): Promise<{ id: string; endpoint: PreviewEndpoint }> {
  const answer = await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/previews`, { audience: 'public', ...fields });
  if (answer.status !== 201) throw new Error(`no link: ${JSON.stringify(answer.body)}`);
  const { id, url } = (answer.body as { preview: { id: string; url: string } }).preview;
  return { id, endpoint: endpointOf(url) };
}

async function statusAndCookie(
  caller: Caller,
  { host, token }: PreviewEndpoint,
): Promise<{ status: number; cookie: string | null }> {
  const bytes = Buffer.from(`GET /?token=${token} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  const { answers } = await exchangeBytes(caller.url, { pieces: [bytes], methods: ['GET'] });
  const cookies = answers[0]?.headers.get('set-cookie') ?? [];
  return { status: answers[0]?.status ?? 0, cookie: /^berth_preview=([^;]+)/.exec(cookies.join('\n'))?.[1] ?? null };
}

async function cookieOf(caller: Caller, endpoint: PreviewEndpoint): Promise<string> {
  const { status, cookie } = await statusAndCookie(caller, endpoint);
  if (cookie === null) throw new Error(`a link was answered ${status}, without a cookie`);
  return cookie;
}

async function untilAnswered(caller: Caller, endpoint: PreviewEndpoint, wanted: number): Promise<void> {
  const deadline = Date.now() + EXPIRY_DEADLINE_MS;
  for (;;) {
    const { status } = await statusAndCookie(caller, endpoint);
    if (status === wanted) return;
    if (Date.now() > deadline) throw new Error(`a link is answered ${status} rather than ${wanted}`);
    await delay(POLL_MS);
  }
}
