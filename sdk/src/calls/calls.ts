// Shared state of the SDK's parts: raw client, call settings and default org.
import { BerthError } from '../transport/errors.ts';
import type { RawClient } from '../generated/raw/index.ts';
import type { Endpoint } from '../streams/open.ts';
import type { CallNotes, Transport } from '../transport/transport.ts';

interface CallsOptions {
  raw: RawClient;
  transport: Transport;
  orgId: string | undefined;
  projectId: string | undefined;
  endpoint: Endpoint;
}

export class Calls {
  readonly raw: RawClient;
  readonly endpoint: Endpoint;
  readonly #transport: Transport;
  readonly #projectId: string | undefined;
  #orgId: Promise<string> | undefined;

  constructor({ raw, transport, orgId, projectId, endpoint }: CallsOptions) {
    this.raw = raw;
    this.endpoint = endpoint;
    this.#transport = transport;
    this.#projectId = projectId;
    this.#orgId = orgId === undefined ? undefined : Promise.resolve(orgId);
  }

  /** Settings of one call for the raw client. */
  readonly with = (notes: CallNotes): { fetch: typeof globalThis.fetch } => ({
    fetch: this.#transport.fetchFor(notes),
  });

  /** Transfers the raw content of a file of a sandbox; see {@link Transport.transfer}. */
  async transfer(
    sandboxId: string,
    query: Record<string, string>,
    init: Parameters<Transport['transfer']>[1],
  ): Promise<Response> {
    const path = `v1/sandboxes/${encodeURIComponent(sandboxId)}/file/content?${new URLSearchParams(query).toString()}`;
    return await this.#transport.transfer(new URL(path, `${this.endpoint.url}/`), init);
  }

  /** Resolves with the given org, or the only one of the caller, which is cached. */
  async orgId(given?: string): Promise<string> {
    if (given !== undefined) return given;
    this.#orgId ??= this.#findOrg();
    try {
      return await this.#orgId;
    } catch (error) {
      this.#orgId = undefined;
      throw error;
    }
  }

  /** Resolves with the given project, the client's, or the only one of the org. */
  async projectId(given: string | undefined, orgId: string): Promise<string> {
    const projectId = given ?? this.#projectId;
    if (projectId !== undefined) return projectId;
    const { projects } = await this.raw.listProjects({ path: { orgId }, ...this.with({}) });
    const [first, ...others] = projects;
    if (first !== undefined && others.length === 0) return first.id;
    throw new BerthError(
      `the org has ${first === undefined ? 'no project; create one' : `several projects: ${named(projects)}`}; ` +
        'pass projectId to the call or to new Berth(), or set BERTH_PROJECT_ID',
      { code: 'configuration' },
    );
  }

  async #findOrg(): Promise<string> {
    const { orgs } = await this.raw.listMyOrgs(this.with({}));
    const [first, ...others] = orgs;
    if (first !== undefined && others.length === 0) return first.id;
    throw new BerthError(
      `the caller belongs to ${first === undefined ? 'no org' : `several orgs: ${named(orgs)}`}; ` +
        'pass orgId to new Berth()',
      { code: 'configuration' },
    );
  }
}

/** The first ten, for a message. */
function named(list: readonly { id: string; name: string }[]): string {
  const names = list.slice(0, 10).map(({ id, name }) => `${id} (${name})`);
  return [...names, ...(list.length > names.length ? ['…'] : [])].join(', ');
}
