// The tables of people and of what they sign in and call with, as Kysely sees them (schema.ts);
// columns are named as in the database.
import type { GeneratedInstant, Instant } from './column-types.ts';

/** The sign-in library's user table: its column names are camelCase. */
export interface UserTable {
  id: string;
  name: string;
  email: string;
  emailVerified: boolean;
  image: string | null;
  createdAt: GeneratedInstant;
  updatedAt: GeneratedInstant;
}

/** The sign-in library's: a login, which a refresh token or the console's cookie stands for. */
export interface LoginTable {
  id: string;
  expiresAt: Date;
  token: string;
  createdAt: GeneratedInstant;
  updatedAt: Date;
  ipAddress: string | null;
  userAgent: string | null;
  userId: string;
}

/**
 * The sign-in library's: how a user signs in. `password` is a hash, of the provider `credential`.
 */
export interface AccountTable {
  id: string;
  accountId: string;
  providerId: string;
  userId: string;
  password: string | null;
  createdAt: GeneratedInstant;
  updatedAt: Date;
}

/** The sign-in library's: short-lived values of its own, by name. */
export interface VerificationTable {
  id: string;
  identifier: string;
  value: string;
  expiresAt: Date;
  createdAt: GeneratedInstant;
  updatedAt: GeneratedInstant;
}

/**
 * The sign-in library's: a device that asks to be let in. Its `deviceCode` alone opens nothing:
 * devices hold it with a signature.
 */
export interface DeviceCodeTable {
  id: string;
  deviceCode: string;
  userCode: string;
  userId: string | null;
  expiresAt: Date;
  status: string;
  lastPolledAt: Date | null;
  /** In milliseconds. */
  pollingInterval: number | null;
  clientId: string | null;
  scope: string | null;
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
  created_at: GeneratedInstant;
  expires_at: Instant;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}

export interface InvitationTable {
  id: string;
  org_id: string;
  email: string;
  role: string;
  invited_by: string | null;
  /** null until the mail was sent. */
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

export interface ThrottleTable {
  key_sha256: Buffer;
  tokens: number;
  refilled_at: Instant;
}

export interface OrgTable {
  id: string;
  name: string;
  created_at: GeneratedInstant;
}

export interface MembershipTable {
  org_id: string;
  user_id: string;
  role: string;
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
  created_at: GeneratedInstant;
  expires_at: Instant | null;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}
