// What opens a preview: the tokens in its URL and the cookie that takes their place, each signed
// under the installation's secret key for one sandbox and port, so for one host. Texts and
// signatures only: whether a link or a login is still good is in the database.
//
//   bpt_<link id without prv_>.<mac>                         a public link; good while its row is
//   bpt_team.<expiry>.<mac>                                  names a team link; opens nothing by itself
//   bpt_grant.<login>.<user>.<expiry>.<granted until>.<mac>  what the service sends a signed-in member to the preview with
//   bpc_public.<link id>.<expiry>.<mac>, bpc_team.<login>.<user>.<expiry>.<mac>   the cookies
//
// Times are milliseconds since 1970 in base 36. The mac is HMAC-SHA-256 in base64url over a JSON
// array of all that stands before it, the sandbox and the port: no two different things have the
// same text to sign.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { PREVIEW_TOKEN_PREFIX } from '../../rules/previews/credentials.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';

const LINK_PREFIX = 'prv_';
const COOKIE_PREFIX = 'bpc_';
const MAC_CHARACTERS = 43;
/** No text of ours is as long; a longer one is not worth a look. */
const LONGEST = 256;

const ID = String.raw`[a-z]{3}_[a-z2-7]{24}`;
const TIME = '[0-9a-z]{1,9}';
const FORMS = {
  public: /^[a-z2-7]{24}$/,
  team: new RegExp(`^team\\.(${TIME})$`),
  grant: new RegExp(`^grant\\.(${ID})\\.(${ID})\\.(${TIME})\\.(${TIME})$`),
  publicCookie: new RegExp(`^public\\.(${ID})\\.(${TIME})$`),
  teamCookie: new RegExp(`^team\\.(${ID})\\.(${ID})\\.(${TIME})$`),
} as const;

/** A signed-in person. */
export interface Person {
  loginId: string;
  userId: string;
}

/** What a token of a preview's URL says. `expiresAtMs` is the link's. */
export type PreviewToken =
  | { kind: 'public'; linkId: string }
  | { kind: 'team'; expiresAtMs: number }
  | ({ kind: 'grant'; expiresAtMs: number; grantedUntilMs: number } & Person);

/** Whom a cookie stands for, and when the link that it came from expires. */
export type PreviewCookie = ({ kind: 'public'; linkId: string } | ({ kind: 'team' } & Person)) & {
  expiresAtMs: number;
};

export function publicToken(key: Buffer, linkId: string, place: PreviewPlace): string {
  return signed(key, PREVIEW_TOKEN_PREFIX, linkId.slice(LINK_PREFIX.length), place);
}

export function teamToken(key: Buffer, expiresAtMs: number, place: PreviewPlace): string {
  return signed(key, PREVIEW_TOKEN_PREFIX, `team.${expiresAtMs.toString(36)}`, place);
}

export function grantToken(
  key: Buffer,
  grant: Person & { expiresAtMs: number; grantedUntilMs: number },
  place: PreviewPlace,
): string {
  const { loginId, userId, expiresAtMs, grantedUntilMs } = grant;
  return signed(
    key,
    PREVIEW_TOKEN_PREFIX,
    `grant.${loginId}.${userId}.${expiresAtMs.toString(36)}.${grantedUntilMs.toString(36)}`,
    place,
  );
}

/** Null for whatever was not signed here for this place. */
export function readToken(key: Buffer, token: string, place: PreviewPlace): PreviewToken | null {
  const text = verified(key, PREVIEW_TOKEN_PREFIX, token, place);
  if (text === null) return null;
  if (FORMS.public.test(text)) return { kind: 'public', linkId: LINK_PREFIX + text };
  const team = FORMS.team.exec(text);
  if (team !== null) return { kind: 'team', expiresAtMs: timeOf(team[1]) };
  const [, loginId, userId, expiry, granted] = FORMS.grant.exec(text) ?? [];
  if (loginId === undefined || userId === undefined) return null;
  return { kind: 'grant', loginId, userId, expiresAtMs: timeOf(expiry), grantedUntilMs: timeOf(granted) };
}

export function cookieValue(key: Buffer, cookie: PreviewCookie, place: PreviewPlace): string {
  const expiry = cookie.expiresAtMs.toString(36);
  const text =
    cookie.kind === 'public'
      ? `public.${cookie.linkId}.${expiry}`
      : `team.${cookie.loginId}.${cookie.userId}.${expiry}`;
  return signed(key, COOKIE_PREFIX, text, place);
}

/** Null for whatever was not signed here for this place. */
export function readCookie(key: Buffer, value: string, place: PreviewPlace): PreviewCookie | null {
  const text = verified(key, COOKIE_PREFIX, value, place);
  if (text === null) return null;
  const [, linkId, linkExpiry] = FORMS.publicCookie.exec(text) ?? [];
  if (linkId !== undefined) return { kind: 'public', linkId, expiresAtMs: timeOf(linkExpiry) };
  const [, loginId, userId, expiry] = FORMS.teamCookie.exec(text) ?? [];
  if (loginId === undefined || userId === undefined) return null;
  return { kind: 'team', loginId, userId, expiresAtMs: timeOf(expiry) };
}

function timeOf(text: string | undefined): number {
  return Number.parseInt(text ?? '', 36);
}

function signed(key: Buffer, prefix: string, text: string, place: PreviewPlace): string {
  return `${prefix}${text}.${macOf(key, prefix, text, place)}`;
}

/** What stands between prefix and mac, when the mac is right. */
function verified(key: Buffer, prefix: string, given: string, place: PreviewPlace): string | null {
  if (given.length > LONGEST || !given.startsWith(prefix)) return null;
  const dot = given.lastIndexOf('.');
  if (dot < prefix.length || given.length - dot - 1 !== MAC_CHARACTERS) return null;
  const text = given.slice(prefix.length, dot);
  // As text: base64url is read leniently. Characters beyond ASCII would make the lengths differ.
  const mac = Buffer.from(given.slice(dot + 1));
  return mac.byteLength === MAC_CHARACTERS && timingSafeEqual(mac, Buffer.from(macOf(key, prefix, text, place)))
    ? text
    : null;
}

function macOf(key: Buffer, prefix: string, text: string, { sandboxId, port }: PreviewPlace): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([prefix, text, sandboxId, port]))
    .digest('base64url');
}
