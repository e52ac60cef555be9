// The API keys of an org. Managed with a session token alone: an API key may not.
import type { Calls } from './calls.ts';
import type { ApiKey, CreateApiKeyData } from './generated/raw/index.ts';
import type { OrgCallOptions } from './projects.ts';

export type { ApiKey };
export type ApiKeySpec = NonNullable<CreateApiKeyData['body']>;

export class ApiKeys {
  readonly #calls: Calls;

  /** Made by the client. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** All of them, newest first, expired and revoked ones too. */
  async list({ orgId, ...options }: OrgCallOptions = {}): Promise<ApiKey[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listApiKeys({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) })).apiKeys;
  }

  /** Makes a key. Its token is given here and never again. */
  async create(
    spec: ApiKeySpec,
    { orgId, ...options }: OrgCallOptions = {},
  ): Promise<{ apiKey: ApiKey; token: string }> {
    const { raw, with: set } = this.#calls;
    return await raw.createApiKey({ path: { orgId: await this.#calls.orgId(orgId) }, body: spec, ...set(options) });
  }

  /** Revokes a key at once; doing it again changes nothing. */
  async revoke(keyId: string, { orgId, ...options }: OrgCallOptions = {}): Promise<ApiKey> {
    const { raw, with: set } = this.#calls;
    return (await raw.revokeApiKey({ path: { orgId: await this.#calls.orgId(orgId), keyId }, ...set(options) })).apiKey;
  }
}
