// Installation for a run, with a credential of every kind, kept at a few sandboxes with live agent
// sessions.
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { MACHINE_SIZES } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { AgentSession } from '@berth/contract/agents/sessions.ts';
import { awakeSandbox, call, createProject, destroySandbox, listSandboxes, type Caller } from '../world/client.ts';
import { agentTokenOf } from '../world/agent-token.ts';
import { ownerSession } from '../world/owner-session.ts';
import { Parts } from '../world/parts.ts';
import type { ApiFuzzReport } from './report.ts';
import { runApiFuzz, type ApiFuzzOptions } from './run.ts';

/** Sandboxes kept between batches, each of the smallest size: so a run reserves a constant disk. */
const AWAKE = 2;
const OTHERS = 1;
const SIZE = 'small';

const isAwake = ({ status }: Sandbox): boolean => status === 'ready' || status === 'running';
/** False for a sandbox that was resized, or will be. */
const isSmall = ({ allocated_disk_gb: diskGb, allocated_memory_gb: memoryGb, pendingAllocation }: Sandbox): boolean =>
  diskGb <= MACHINE_SIZES[SIZE].diskGb && memoryGb <= MACHINE_SIZES[SIZE].memoryGb && pendingAllocation === undefined;

class ApiFuzzWorld {
  readonly url: string;
  /** By the names of the document's security schemes. */
  readonly tokens: { session: string; apiKey: string; agentToken: string };
  readonly #parts: Parts;
  #tidied = 0;

  private constructor(parts: Parts, session: string, agentToken: string) {
    this.#parts = parts;
    this.url = parts.caller.url;
    this.tokens = { session, apiKey: parts.caller.token, agentToken };
  }

  /** @param driver `fake` has everything but VMs */
  static async start(driver: 'qemu' | 'fake'): Promise<ApiFuzzWorld> {
    const parts = await Parts.start({ driver, environment: { BERTH_SCRIPTED_AGENT: '1' } });
    try {
      await createProject(parts.caller, { useCase: 'external' });
      const session = await ownerSession(parts);
      const world = new ApiFuzzWorld(parts, session, await agentTokenOf({ ...parts.caller, token: session }));
      await world.tidy();
      return world;
    } catch (error) {
      await parts.stop();
      await parts.remove();
      throw error;
    }
  }

  /**
   * Destroys excess sandboxes, keeps some awake and the credentials valid. Returns the awake
   * sandboxes, and agent sessions in them.
   */
  async tidy(): Promise<{ sandboxes: Sandbox[]; sessions: AgentSession[] }> {
    const caller = { ...this.#parts.caller, token: this.tokens.session };
    // A request of the run may have revoked the key.
    const { status } = await call({ ...caller, token: this.tokens.apiKey }, 'GET', '/v1/me');
    if (status === 401) {
      const { body } = await call(caller, 'POST', `/v1/orgs/${caller.orgId}/api-keys`, { name: 'another' });
      this.tokens.apiKey = (body as { token: string }).token;
    }
    if ((await call({ ...caller, token: this.tokens.agentToken }, 'GET', '/v1/agent-sessions')).status === 401)
      this.tokens.agentToken = await agentTokenOf(caller);
    const sandboxes = await listSandboxes(caller);
    const small = sandboxes.filter(isSmall);
    const awake = small.filter(isAwake).slice(0, AWAKE);
    const kept = [...awake, ...small.filter((sandbox) => !isAwake(sandbox)).slice(0, OTHERS)];
    for (const sandbox of sandboxes) if (!kept.includes(sandbox)) await destroySandbox(caller, sandbox.id);

    while (awake.length < AWAKE) awake.push(await awakeSandbox(caller, { machineSize: SIZE }));
    const sessions = await Promise.all(awake.map(({ id }) => this.#liveSession(caller, id)));
    return { sandboxes: awake, sessions: sessions.filter((session) => session !== null) };
  }

  /** A session of the sandbox; one that is stopped is recovered, a busy one asks or never ends. */
  async #liveSession(caller: Caller, sandboxId: string): Promise<AgentSession | null> {
    const listed = await call(caller, 'GET', `/v1/agent-sessions?sandboxId=${sandboxId}&limit=1`);
    const [known] = (listed.body as { sessions: AgentSession[] }).sessions;
    const path = known === undefined ? `sandboxes/${sandboxId}/agent-sessions` : `agent-sessions/${known.id}/recover`;
    const { status, body } = await call(caller, 'POST', `/v1/${path}`);
    if (status >= 300) return null;
    const session = body as AgentSession;
    const text = ['say done', 'ask for it', 'stream 20 5', 'hang'][this.#tidied % 4];
    this.#tidied += 1;
    await call(caller, 'POST', `/v1/agent-sessions/${session.id}/messages`, { text });
    return session;
  }

  /** Ends everything. Returns the leftovers. */
  async end(): Promise<string[]> {
    const caller = { ...this.#parts.caller, token: this.tokens.session };
    try {
      for (const { id } of await listSandboxes(caller)) await destroySandbox(caller, id);
    } catch (error) {
      await this.#parts.close();
      throw error;
    }
    return await this.#parts.close();
  }
}

/** Runs the fuzzer against an installation of its own. Leftovers of it are findings. */
export async function fuzzApi(
  driver: 'qemu' | 'fake',
  options: Omit<ApiFuzzOptions, 'target'>,
): Promise<ApiFuzzReport> {
  const world = await ApiFuzzWorld.start(driver);
  let report: ApiFuzzReport;
  let left: string[];
  try {
    report = await runApiFuzz({ ...options, target: world });
  } finally {
    left = await world.end();
  }
  for (const what of left) report.found('left', `after the end: ${what}`);
  return report;
}
