// Looks up the holder of a bearer token and the sandbox or agent session named in the path: one
// prepared statement, one round trip per API call. Read-only. Caches nothing, so a revocation or
// demotion takes effect with the next call on every replica.
import type { Pool } from 'pg';
import type { SsoTerms } from '../../rules/access/sso.ts';
import type { LocatedSandboxRow } from '../sandboxes/sandboxes.ts';
import { isId } from '../database/ids.ts';
import type { AgentSessionRow, SandboxRow } from '../database/schema.ts';
import { ssoTermsText } from './sso.ts';

export interface PresentedApiKey {
  id: string;
  org_id: string;
  created_by: string | null;
  scopes: string[] | null;
  expires_at: Date | null;
  revoked_at: Date | null;
  expired: boolean;
  used_lately: boolean;
  /** The creator's current role in the org. */
  role: string | null;
}

export interface PresentedSessionToken {
  id: string;
  login_id: string;
  user_id: string;
  expires_at: Date;
  /** True also if the sign-in session itself has expired. */
  expired: boolean;
  used_lately: boolean;
  /** Since the sign-in, or its last confirmation. */
  seconds_since_sign_in: number;
  via_sso: boolean;
}

export interface PresentedAgentToken {
  id: string;
  user_id: string;
  access: 'read_only' | 'read_send';
  can_approve: boolean;
  can_wake: boolean;
  via_sso: boolean;
  revoked_orgs: string[];
  expires_at: Date;
  revoked_at: Date | null;
  expired: boolean;
  used_lately: boolean;
}

/**
 * A credential; with a named sandbox or session, also the row of the sandbox and the user's current
 * role in its org.
 */
export interface Found<Credential> {
  credential: Credential | undefined;
  sandbox: LocatedSandboxRow | undefined;
  /** The named session. */
  session: AgentSessionRow | undefined;
  roleInOrgOfSandbox: string | null;
  /** The user's terms in that org; null if it does not require SSO, and for keys. */
  ssoInOrgOfSandbox: SsoTerms | null;
}

type Kind = 'key' | 'session' | 'agent_token';

/**
 * Columns read for each kind of credential, and their tables. `holder` is the user. The database
 * clock decides expiry.
 */
const CREDENTIALS: {
  readonly [kind in Kind]: { columns: Readonly<Record<string, string>>; from: string; holder: string };
} = {
  key: {
    columns: {
      id: 'c.id',
      org_id: 'c.org_id',
      created_by: 'c.created_by',
      scopes: 'c.scopes',
      expires_at: 'c.expires_at',
      revoked_at: 'c.revoked_at',
      expired: 'coalesce(c.expires_at <= now(), false)',
      used_lately: "coalesce(c.last_used_at > now() - interval '1 minute', false)",
      role: 'own.role',
    } satisfies Record<keyof PresentedApiKey, string>,
    from: 'api_key c left join membership own on own.org_id = c.org_id and own.user_id = c.created_by',
    holder: 'c.created_by',
  },
  session: {
    columns: {
      id: 'c.id',
      login_id: 'c.login_id',
      user_id: 'c.user_id',
      expires_at: 'c.expires_at',
      expired: '(c.expires_at <= now() or login."expiresAt" <= now())',
      used_lately: `login."lastUsedAt" > now() - interval '1 minute'`,
      seconds_since_sign_in: 'extract(epoch from now() - login."authenticatedAt")::float8',
      via_sso: 'login."viaSso"',
    } satisfies Record<keyof PresentedSessionToken, string>,
    // Sign-out deletes the sign-in session, and its tokens with it.
    from: 'session_token c join "session" login on login.id = c.login_id',
    holder: 'c.user_id',
  },
  agent_token: {
    columns: {
      id: 'c.id',
      user_id: 'c.user_id',
      access: 'c.access',
      can_approve: 'c.can_approve',
      can_wake: 'c.can_wake',
      via_sso: 'c.via_sso',
      revoked_orgs: 'c.revoked_orgs',
      expires_at: 'c.expires_at',
      revoked_at: 'c.revoked_at',
      expired: 'c.expires_at <= now()',
      used_lately: "coalesce(c.last_used_at > now() - interval '1 minute', false)",
    } satisfies Record<keyof PresentedAgentToken, string>,
    from: 'agent_token c',
    holder: 'c.user_id',
  },
};

const NO_SANDBOX = { sandbox: undefined, session: undefined, roleInOrgOfSandbox: null, ssoInOrgOfSandbox: null };

interface WithSandbox {
  role_there?: string | null;
  sso_there?: SsoTerms | null;
  host_url?: string | null;
  sandbox_row?: Record<string, unknown> | null;
  session_row?: Record<string, unknown> | null;
}

/** With the sandbox of an id, or of a session's id. */
type Form = 'alone' | 'withSandbox' | 'withSession';

interface Statement {
  name: string;
  text: string;
}

const STATEMENTS: { readonly [kind in Kind]: { [form in Form]: Statement } } = {
  key: statementsOf('key'),
  session: statementsOf('session'),
  agent_token: statementsOf('agent_token'),
};

/** Postgres error when a newer replica's migration changed a prepared statement's columns. */
const FEATURE_NOT_SUPPORTED = '0A000';

export class Callers {
  readonly #pool: Pool;
  /** Part of the statement names. Raising it makes Postgres prepare them anew. */
  #generation = 1;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async findKey(tokenSha256: Buffer, namedId: string | null): Promise<Found<PresentedApiKey>> {
    return await this.#find<PresentedApiKey>('key', tokenSha256, namedId);
  }

  async findSession(tokenSha256: Buffer, namedId: string | null): Promise<Found<PresentedSessionToken>> {
    return await this.#find<PresentedSessionToken>('session', tokenSha256, namedId);
  }

  async findAgentToken(tokenSha256: Buffer, namedId: string | null): Promise<Found<PresentedAgentToken>> {
    return await this.#find<PresentedAgentToken>('agent_token', tokenSha256, namedId);
  }

  async #find<Credential>(kind: Kind, tokenSha256: Buffer, namedId: string | null): Promise<Found<Credential>> {
    const row = await this.#row<Credential>(kind, tokenSha256, namedId);
    if (row === undefined) return { credential: undefined, ...NO_SANDBOX };
    const { sandbox_row: sandbox, session_row: session, host_url, role_there, sso_there, ...rest } = row;
    const credential = rest as Credential;
    if (sandbox === null || sandbox === undefined) return { credential, ...NO_SANDBOX };
    return {
      credential,
      sandbox: locatedRow(sandbox, host_url ?? null),
      session: session == null ? undefined : sessionRow(session),
      roleInOrgOfSandbox: role_there ?? null,
      ssoInOrgOfSandbox: sso_there ?? null,
    };
  }

  async #row<Credential>(
    kind: Kind,
    tokenSha256: Buffer,
    namedId: string | null,
  ): Promise<(Credential & WithSandbox) | undefined> {
    const values = namedId === null ? [tokenSha256] : [tokenSha256, namedId];
    const { text, name } = STATEMENTS[kind][formFor(namedId)];
    const ask = async (): Promise<(Credential & WithSandbox) | undefined> =>
      (await this.#pool.query<Credential & WithSandbox>({ name: `${name}_${this.#generation}`, text, values })).rows[0];
    const generation = this.#generation;
    try {
      return await ask();
    } catch (error) {
      if ((error as { code?: unknown }).code !== FEATURE_NOT_SUPPORTED) throw error;
      // Only the first of several concurrent failures raises it.
      if (generation === this.#generation) this.#generation += 1;
      return await ask();
    }
  }
}

function formFor(namedId: string | null): Form {
  if (namedId === null) return 'alone';
  return isId('agentSession', namedId) ? 'withSession' : 'withSandbox';
}

/**
 * Sandbox and session are JSON values: describing and parsing their columns would cost every call.
 */
function statementsOf(kind: Kind): { [form in Form]: Statement } {
  const { columns, from, holder } = CREDENTIALS[kind];
  const credential = Object.entries(columns).map(([name, value]) => `${value} as ${name}`);
  const withSandbox = (columnsOf: string, join: string): string =>
    `select ${credential.join(', ')}, there.role as role_there, host.url as host_url,
        ${kind === 'key' ? 'null' : ssoTermsText('org_there', holder)} as sso_there,
        row_to_json(sandbox) as sandbox_row${columnsOf}
        from ${from}
        ${join}
        left join membership there on there.org_id = sandbox.org_id and there.user_id = ${holder}
        ${kind === 'key' ? '' : 'left join org org_there on org_there.id = sandbox.org_id'}
        left join host on host.id = sandbox.host_id
        where c.token_sha256 = $1`;
  return {
    alone: { name: `find_${kind}`, text: `select ${credential.join(', ')} from ${from} where c.token_sha256 = $1` },
    withSandbox: {
      name: `find_${kind}_and_sandbox`,
      text: withSandbox('', 'left join sandbox on sandbox.id = $2'),
    },
    withSession: {
      name: `find_${kind}_and_agent_session`,
      text: withSandbox(
        ', row_to_json(agent_session) as session_row',
        `left join agent_session on agent_session.id = $2
        left join sandbox on sandbox.id = agent_session.sandbox_id`,
      ),
    },
  };
}

type InstantColumn<Row> = { [name in keyof Row]: Date extends Row[name] ? name : never }[keyof Row];

/** Sandbox columns that JSON encodes as text. */
const INSTANTS: { readonly [name in InstantColumn<SandboxRow>]: true } = {
  status_changed_at: true,
  expires_at: true,
  egress_denied_at: true,
  last_wake_at: true,
  last_active_at: true,
  created_at: true,
  updated_at: true,
  deleted_at: true,
};

const SESSION_INSTANTS: { readonly [name in InstantColumn<AgentSessionRow>]: true } = {
  prompt_asked_at: true,
  prompt_noted_at: true,
  stop_noted_at: true,
  state_at: true,
  created_at: true,
  updated_at: true,
  gone_at: true,
};
/** Session columns that JSON encodes as numbers, and the driver as text. */
const SESSION_COUNTERS = ['prompt_id', 'last_seq', 'signs', 'view_revision', 'revision'] as const;

function locatedRow(json: Record<string, unknown>, hostUrl: string | null): LocatedSandboxRow {
  readInstants(json, INSTANTS);
  json['host_url'] = hostUrl;
  return json as unknown as LocatedSandboxRow;
}

function sessionRow(json: Record<string, unknown>): AgentSessionRow {
  readInstants(json, SESSION_INSTANTS);
  for (const name of SESSION_COUNTERS) if (typeof json[name] === 'number') json[name] = String(json[name]);

  return json as unknown as AgentSessionRow;
}

function readInstants(json: Record<string, unknown>, names: object): void {
  for (const name of Object.keys(names)) {
    const text = json[name];
    if (typeof text === 'string') json[name] = new Date(text);
  }
}
