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

  /** Returns the given project, or the client's. */
  projectId(given: string | undefined): string {
    const projectId = given ?? this.#projectId;
    if (projectId !== undefined) return projectId;
    throw new BerthError('no project: pass projectId to the call or to new Berth(), or set BERTH_PROJECT_ID', {
      code: 'configuration',
    });
  }

  async #findOrg(): Promise<string> {
    const { orgs } = await this.raw.listMyOrgs(this.with({}));
    const [first, ...others] = orgs;
    if (first !== undefined && others.length === 0) return first.id;
    const names = orgs.map(({ id, name }) => `${id} (${name})`).join(', ');
    throw new BerthError(
      `the caller belongs to ${orgs.length === 0 ? 'no org' : `several orgs: ${names}`}; pass orgId to new Berth()`,
      {
        code: 'configuration',
      },
    );
  }
}
