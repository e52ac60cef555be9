// Client of the endpoints below /auth/, people with accounts, and a second API instance on the same
// database.
import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import { newServices } from '../../src/control-plane/control-plane.ts';
import { openServer } from '../../src/control-plane/server.ts';
import { listen } from '../../src/http/app.ts';
import type { ClientSignIn } from '../../src/services/people/client-sign-in-port.ts';
import type { Caller, Login, SignInError, SignInRefusal } from '../../src/services/people/sign-in-port.ts';
import { openSignIn } from '../../src/sign-in/sign-in.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { newId } from '../../src/store/database/ids.ts';
import type { Database } from '../../src/store/database/schema.ts';
import type { TestApi } from '../world/api.ts';

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const PASSWORD = 'correct horse battery staple';

/** Unique caller address within the test run. */
export function newCaller(): Caller {
  return { address: `192.0.2.${newId('signIn')}`, userAgent: 'test' };
}

export interface AuthAnswer {
  status: number;
  headers: Headers;
  body: any; // oxlint-disable-line typescript/no-explicit-any
}

/** Posts a form like an OAuth client; asserts the common headers. */
export async function post(
  url: string,
  path: string,
  fields: Record<string, string> | URLSearchParams | string,
  headers: Record<string, string> = {},
): Promise<AuthAnswer> {
  const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString();
  const response = await fetch(url + path, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  });
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const text = await response.text();
  const answer = {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
  if (response.status >= 400) assert.deepEqual(Object.keys(answer.body), ['error', 'error_description']);
  return answer;
}

export interface Person {
  userId: string;
  email: string;
  password: string;
}

/** Creates a person with an account and a password. */
export async function makePerson(
  signIn: ClientSignIn,
  changes: { emailVerified?: boolean; email?: string } = {},
): Promise<Person> {
  const email = changes.email ?? `${newId('user')}@example.test`;
  const emailVerified = changes.emailVerified ?? true;
  const { userId } = await signIn.createAccount({ email, name: 'Pat Person', password: PASSWORD, emailVerified });
  return { userId, email, password: PASSWORD };
}

export async function signInPerson(signIn: ClientSignIn, person: Person): Promise<Login> {
  return await signIn.withPassword({ email: person.email, password: person.password }, newCaller());
}

/** Matcher for `assert.rejects`: a refused sign-in with the reason. */
export function refusedWith(refusal: SignInRefusal): (error: SignInError) => boolean {
  return (error) => {
    assert.equal(error.refusal, refusal, String(error));
    return true;
  };
}

export interface Instance {
  url: string;
  app: FastifyInstance;
  signIn: ClientSignIn;
  close(): Promise<void>;
}

/** Starts another API instance: own server and connections, same database and secret key. */
export async function startInstance(api: TestApi): Promise<Instance> {
  const { db } = openDatabase({
    url: api.databaseUrl,
    maxConnections: 5,
    statementTimeoutMs: 30_000,
    onIdleError: () => undefined,
  });
  const context = { ...api.context, db };
  const signIn = openSignIn({ ...context, oidc: null });
  const app = await openServer(newServices(context, signIn));
  const { port } = await listen(app, '127.0.0.1', 0);
  return {
    url: `http://127.0.0.1:${port}`,
    app,
    signIn,
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
      await db.destroy();
    },
  };
}

/** Stops the refill of existing buckets, so that the test's duration does not matter. */
export async function stopRefilling(db: Database): Promise<void> {
  await sql`
    update throttle set refilled_at = clock_timestamp() + interval '1 day'
    where refilled_at <= clock_timestamp()`.execute(db);
}

/** Status of a call of the API with the token. */
export async function statusOfMe(url: string, token: string): Promise<number> {
  const response = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  await response.arrayBuffer();
  return response.status;
}
