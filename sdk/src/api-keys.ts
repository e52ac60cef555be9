// API keys of an org. Requires a session token.
import type { Calls } from './calls/calls.ts';
import type { ApiKey, CreateApiKeyData } from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';

export type { ApiKey };
export type ApiKeySpec = NonNullable<CreateApiKeyData['body']>;

export class ApiKeys {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Lists keys, newest first, including expired and revoked keys. */
  async list({ orgId, ...options }: OrgCallOptions = {}): Promise<ApiKey[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listApiKeys({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) })).apiKeys;
  }

  /** Creates a key. Its token is only returned here. */
  async create(
    spec: ApiKeySpec,
    { orgId, ...options }: OrgCallOptions = {},
  ): Promise<{ apiKey: ApiKey; token: string }> {
    const { raw, with: set } = this.#calls;
    return await raw.createApiKey({ path: { orgId: await this.#calls.orgId(orgId) }, body: spec, ...set(options) });
  }

  /** Revokes a key immediately. Idempotent. */
  async revoke(keyId: string, { orgId, ...options }: OrgCallOptions = {}): Promise<ApiKey> {
    const { raw, with: set } = this.#calls;
    return (await raw.revokeApiKey({ path: { orgId: await this.#calls.orgId(orgId), keyId }, ...set(options) })).apiKey;
  }
}
