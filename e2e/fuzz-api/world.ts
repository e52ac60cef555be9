// Installation for a run, with an access token and an API key, kept at a few sandboxes.
import { join } from 'node:path';
import { newToken, tokenSha256 } from '@berth/api/services/access/bearer-token.ts';
import { openDatabase } from '@berth/api/store/database/database.ts';
import { newId } from '@berth/api/store/database/ids.ts';
import { insertSessionToken } from '@berth/api/store/access/session-tokens.ts';
import { socketDatabaseUrl } from '@berth/machine/roles/database/connection.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { awakeSandbox, call, createProject, destroySandbox, listSandboxes } from '../world/client.ts';
import { leftoversOf, processesOfInstance } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';

/** Limit on sandboxes that are awake or starting: each has a VM. */
const MOST = 6;
const LEAST_AWAKE = 2;
const SESSION_MINUTES = 24 * 60;

export class ApiFuzzWorld {
  readonly url: string;
  /** By the names of the document's security schemes. */
  readonly tokens: { session: string; apiKey: string };
  readonly #parts: Parts;

  private constructor(parts: Parts, session: string) {
    this.#parts = parts;
    this.url = parts.caller.url;
    this.tokens = { session, apiKey: parts.caller.token };
  }

  /** @param driver `fake` has everything but VMs */
  static async start(driver: 'qemu' | 'fake'): Promise<ApiFuzzWorld> {
    const parts = await Parts.start({ driver });
    try {
      await createProject(parts.caller, { useCase: 'external' });
      const world = new ApiFuzzWorld(parts, await ownerSession(parts));
      await world.tidy();
      return world;
    } catch (error) {
      await parts.stop();
      await parts.remove();
      throw error;
    }
  }

  /** Destroys excess sandboxes, keeps some awake and the key valid. Returns the awake sandboxes. */
  async tidy(): Promise<{ sandboxes: Sandbox[] }> {
    const caller = { ...this.#parts.caller, token: this.tokens.session };
    // A request of the run may have revoked the key.
    const { status } = await call({ ...caller, token: this.tokens.apiKey }, 'GET', '/v1/me');
    if (status === 401) {
      const { body } = await call(caller, 'POST', `/v1/orgs/${caller.orgId}/api-keys`, { name: 'another' });
      this.tokens.apiKey = (body as { token: string }).token;
    }
    const sandboxes = await listSandboxes(caller);
    for (const { id } of sandboxes.slice(MOST)) await destroySandbox(caller, id);
    const awake = sandboxes.slice(0, MOST).filter(({ status }) => status === 'ready' || status === 'running');
    while (awake.length < LEAST_AWAKE) awake.push(await awakeSandbox(caller));
    return { sandboxes: awake };
  }

  /** Ends everything. Returns the leftovers. */
  async end(): Promise<string[]> {
    const caller = { ...this.#parts.caller, token: this.tokens.session };
    try {
      for (const { id } of await listSandboxes(caller)) await destroySandbox(caller, id);
    } finally {
      await this.#parts.stop();
    }
    const left = await leftoversOf(this.#parts.dataFolder);
    for (const pid of await processesOfInstance(this.#parts.dataFolder)) process.kill(pid, 'SIGKILL');
    await this.#parts.remove();
    return left;
  }
}

/** A sign-in of the first owner, as the service makes it. */
async function ownerSession({ dataFolder }: Parts): Promise<string> {
  const { db } = openDatabase({
    url: socketDatabaseUrl(join(dataFolder, 'postgres', 'socket')),
    maxConnections: 1,
    statementTimeoutMs: 10_000,
    onIdleError: () => undefined,
  });
  try {
    const { user_id: userId } = await db
      .selectFrom('membership')
      .select('user_id')
      .where('role', '=', 'owner')
      .executeTakeFirstOrThrow();
    const loginId = newId('signIn');
    const token = newToken('session');
    const times = { expiresAt: new Date(Date.now() + SESSION_MINUTES * 60_000), updatedAt: new Date() };
    await db
      .insertInto('session')
      .values({ id: loginId, userId, token: newToken('session'), ...times, ipAddress: null, userAgent: null })
      .execute();
    await insertSessionToken(db, { loginId, userId, tokenSha256: tokenSha256(token), minutes: SESSION_MINUTES });
    return token;
  } finally {
    await db.destroy();
  }
}
