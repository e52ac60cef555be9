// Kysely types of the tables of people and their credentials (schema.ts). Columns are named as in
// the database.
import type { Role } from '@berth/contract/route/permissions.ts';
import type { Generated } from 'kysely';
import type { GeneratedInstant, Instant } from './column-types.ts';

/** Sign-in library: users. Its column names are camelCase. */
export interface UserTable {
  id: string;
  name: string;
  email: string;
  emailVerified: boolean;
  image: string | null;
  createdAt: GeneratedInstant;
  updatedAt: GeneratedInstant;
}

/** Sign-in library: a sign-in session, held as a refresh token or the console cookie. */
export interface LoginTable {
  id: string;
  expiresAt: Date;
  token: string;
  createdAt: GeneratedInstant;
  updatedAt: Date;
  ipAddress: string | null;
  userAgent: string | null;
  userId: string;
  lastUsedAt: GeneratedInstant;
  /** Last proof of the user's identity: the sign-in, or its confirmation. */
  authenticatedAt: GeneratedInstant;
  /** Generation of the refresh token that is not spent. */
  refreshGeneration: Generated<number>;
  /** Start of that generation; null for the first. */
  refreshedAt: Date | null;
  /** Signed in at the OIDC provider, or approved by such a sign-in. */
  viaSso: Generated<boolean>;
}

/** Sign-in library: sign-in methods. `password` is a hash, with the provider `credential`. */
export interface AccountTable {
  id: string;
  accountId: string;
  providerId: string;
  userId: string;
  password: string | null;
  createdAt: GeneratedInstant;
  updatedAt: Date;
}

/** Sign-in library: short-lived values, by name. */
export interface VerificationTable {
  id: string;
  identifier: string;
  value: string;
  expiresAt: Date;
  createdAt: GeneratedInstant;
  updatedAt: GeneratedInstant;
}

/**
 * Sign-in library: devices waiting for approval. `deviceCode` alone opens nothing: devices hold it
 * with a signature.
 */
export interface DeviceCodeTable {
  id: string;
  deviceCode: string;
  userCode: string;
  userId: string | null;
  expiresAt: Date;
  status: string;
  lastPolledAt: Date | null;
  /** Milliseconds. */
  pollingInterval: number | null;
  clientId: string | null;
  scope: string | null;
  /** The approving sign-in came from the OIDC provider. */
  viaSso: Generated<boolean>;
}

export interface SessionTokenTable {
  id: string;
  login_id: string;
  user_id: string;
  token_sha256: Buffer;
  created_at: GeneratedInstant;
  expires_at: Instant;
}

export interface AgentTokenTable {
  id: string;
  user_id: string;
  name: string;
  token_sha256: Buffer;
  token_prefix: string;
  access: 'read_only' | 'read_send';
  can_approve: boolean;
  can_wake: boolean;
  /** Created by a sign-in at the OIDC provider. */
  via_sso: Generated<boolean>;
  /** Orgs for which their owners or admins revoked the token. */
  revoked_orgs: Generated<string[]>;
  created_at: GeneratedInstant;
  expires_at: Instant;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}

export interface InvitationTable {
  id: string;
  org_id: string;
  email: string;
  role: Role;
  invited_by: string | null;
  /** null until the mail is sent. */
  token_sha256: Buffer | null;
  created_at: GeneratedInstant;
  expires_at: Instant;
  sent_at: Instant | null;
  accepted_at: Instant | null;
  accepted_by: string | null;
  revoked_at: Instant | null;
}

export interface OneTimeLinkTable {
  id: string;
  purpose: 'welcome' | 'reset_password' | 'verify_email';
  user_id: string;
  token_sha256: Buffer;
  created_at: GeneratedInstant;
  expires_at: Instant;
  used_at: Instant | null;
}

export interface TotpTable {
  user_id: string;
  /** sign-in/factors.ts */
  secret_sealed: Buffer;
  last_step: number;
  created_at: GeneratedInstant;
}

export interface RecoveryCodeTable {
  user_id: string;
  code_sha256: Buffer;
  used_at: Instant | null;
}

export interface PasskeyTable {
  id: string;
  user_id: string;
  name: string;
  public_key: Buffer;
  counter: number;
  created_at: GeneratedInstant;
  last_used_at: Instant | null;
}

export interface SpentChallengeTable {
  challenge_sha256: Buffer;
  spent_at: GeneratedInstant;
}

export interface SpentGrantTable {
  token_sha256: Buffer;
  spent_at: GeneratedInstant;
}

export interface ThrottleTable {
  key_sha256: Buffer;
  tokens: number;
  refilled_at: Instant;
}

export interface OrgTable {
  id: string;
  name: string;
  /** null: the operator, or a user whose account was deleted. */
  created_by: string | null;
  created_at: GeneratedInstant;
  /** Members with an address in a proven domain need a sign-in at the OIDC provider. */
  sso_required: Generated<boolean>;
  /** The operator's org, at most one: made by the first start. */
  is_operator: Generated<boolean>;
}

/** A mail domain that an org claims. One org at most proves a domain. */
export interface OrgDomainTable {
  id: string;
  org_id: string;
  domain: string;
  /** Value that the domain's TXT record must hold. */
  challenge: string;
  created_at: GeneratedInstant;
  /** End of an unproven claim; null once proven. */
  expires_at: Instant | null;
  verified_at: Instant | null;
}

export interface MembershipTable {
  org_id: string;
  user_id: string;
  role: Role;
  created_at: GeneratedInstant;
}

export interface ApiKeyTable {
  id: string;
  org_id: string;
  created_by: string | null;
  name: string;
  token_sha256: Buffer;
  token_prefix: string;
  /** null: unscoped. Empty: grants nothing. */
  scopes: string[] | null;
  /** Created by a sign-in at the OIDC provider. */
  via_sso: Generated<boolean>;
  created_at: GeneratedInstant;
  expires_at: Instant | null;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}
