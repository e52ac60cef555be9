// Preview credentials: tokens in URLs and the cookies that replace them. Each is signed under one
// of the installation's secret keys for one sandbox and port, so for one host. Formats and
// signatures only: the database decides whether a link or login is still valid.
//
//   bpt_<link id without prv_>.<mac>                         public link; valid while its row is
//   bpt_team.<expiry>.<mac>                                  team link; opens nothing by itself
//   bpt_grant.<login>.<user>.<expiry>.<granted until>.<mac>  grant to a signed-in member, used once
//   bpc_public.<link id>.<expiry>.<mac>                      cookie of a public link
//   bpc_team.<login>.<user>.<expiry>.<mac>                   cookie of a team link
//
// For an embeddable link, `team-embed` and `grant-embed` replace `team` and `grant`. Times are
// milliseconds since 1970 in base 36. The mac is HMAC-SHA-256 in base64url over a JSON array of the
// preceding text, the sandbox and the port. No two credentials share a signed text.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { PREVIEW_TOKEN_PREFIX } from '../../rules/previews/credentials.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import type { DerivedKeys } from '../context/secret-key.ts';

const LINK_PREFIX = 'prv_';
const COOKIE_PREFIX = 'bpc_';
const MAC_CHARACTERS = 43;
/** Limit on the text's length. All valid tokens are shorter. */
const LONGEST = 256;

const ID = String.raw`[a-z]{3}_[a-z2-7]{24}`;
const TIME = '[0-9a-z]{1,9}';
const EMBED = '-embed';
const FORMS = {
  public: /^[a-z2-7]{24}$/,
  team: new RegExp(`^team(${EMBED})?\\.(${TIME})$`),
  grant: new RegExp(`^grant(${EMBED})?\\.(${ID})\\.(${ID})\\.(${TIME})\\.(${TIME})$`),
  publicCookie: new RegExp(`^public\\.(${ID})\\.(${TIME})$`),
  teamCookie: new RegExp(`^team(${EMBED})?\\.(${ID})\\.(${ID})\\.(${TIME})$`),
} as const;

/** A signed-in person. */
export interface Person {
  loginId: string;
  userId: string;
}

/** Terms of a team link, which is not stored. */
export interface TeamTerms {
  expiresAtMs: number;
  /** Pages of other origins may frame the app. */
  embeddable: boolean;
}

/** Content of a token in a preview URL. */
export type PreviewToken =
  | { kind: 'public'; linkId: string }
  | ({ kind: 'team' } & TeamTerms)
  | ({ kind: 'grant'; grantedUntilMs: number } & TeamTerms & Person);

/** Holder in a cookie, with the terms of its link. The row has those of a public link. */
export type PreviewCookie =
  | { kind: 'public'; linkId: string; expiresAtMs: number }
  | ({ kind: 'team' } & TeamTerms & Person);

export function publicToken(keys: DerivedKeys, linkId: string, place: PreviewPlace): string {
  return signed(keys, PREVIEW_TOKEN_PREFIX, linkId.slice(LINK_PREFIX.length), place);
}

export function teamToken(keys: DerivedKeys, { expiresAtMs, embeddable }: TeamTerms, place: PreviewPlace): string {
  return signed(keys, PREVIEW_TOKEN_PREFIX, `team${markOf(embeddable)}.${expiresAtMs.toString(36)}`, place);
}

export function grantToken(
  keys: DerivedKeys,
  grant: Person & TeamTerms & { grantedUntilMs: number },
  place: PreviewPlace,
): string {
  const { loginId, userId, expiresAtMs, embeddable, grantedUntilMs } = grant;
  return signed(
    keys,
    PREVIEW_TOKEN_PREFIX,
    `grant${markOf(embeddable)}.${loginId}.${userId}.${expiresAtMs.toString(36)}.${grantedUntilMs.toString(36)}`,
    place,
  );
}

/** null unless signed with one of the keys for this place. */
export function readToken(keys: DerivedKeys, token: string, place: PreviewPlace): PreviewToken | null {
  const text = verified(keys, PREVIEW_TOKEN_PREFIX, token, place);
  if (text === null) return null;
  if (FORMS.public.test(text)) return { kind: 'public', linkId: LINK_PREFIX + text };
  const team = FORMS.team.exec(text);
  if (team !== null) return { kind: 'team', embeddable: team[1] !== undefined, expiresAtMs: timeOf(team[2]) };
  const [, embed, loginId, userId, expiry, granted] = FORMS.grant.exec(text) ?? [];
  if (loginId === undefined || userId === undefined) return null;
  const terms = { embeddable: embed !== undefined, expiresAtMs: timeOf(expiry) };
  return { kind: 'grant', loginId, userId, ...terms, grantedUntilMs: timeOf(granted) };
}

export function cookieValue(keys: DerivedKeys, cookie: PreviewCookie, place: PreviewPlace): string {
  const expiry = cookie.expiresAtMs.toString(36);
  const text =
    cookie.kind === 'public'
      ? `public.${cookie.linkId}.${expiry}`
      : `team${markOf(cookie.embeddable)}.${cookie.loginId}.${cookie.userId}.${expiry}`;
  return signed(keys, COOKIE_PREFIX, text, place);
}

/** null unless signed with one of the keys for this place. */
export function readCookie(keys: DerivedKeys, value: string, place: PreviewPlace): PreviewCookie | null {
  const text = verified(keys, COOKIE_PREFIX, value, place);
  if (text === null) return null;
  const [, linkId, linkExpiry] = FORMS.publicCookie.exec(text) ?? [];
  if (linkId !== undefined) return { kind: 'public', linkId, expiresAtMs: timeOf(linkExpiry) };
  const [, embed, loginId, userId, expiry] = FORMS.teamCookie.exec(text) ?? [];
  if (loginId === undefined || userId === undefined) return null;
  return { kind: 'team', loginId, userId, embeddable: embed !== undefined, expiresAtMs: timeOf(expiry) };
}

function markOf(embeddable: boolean): string {
  return embeddable ? EMBED : '';
}

function timeOf(text: string | undefined): number {
  return Number.parseInt(text ?? '', 36);
}

function signed([{ key }]: DerivedKeys, prefix: string, text: string, place: PreviewPlace): string {
  return `${prefix}${text}.${macOf(key, prefix, text, place)}`;
}

/** The text between prefix and mac; null if the mac is wrong. */
function verified(keys: DerivedKeys, prefix: string, given: string, place: PreviewPlace): string | null {
  if (given.length > LONGEST || !given.startsWith(prefix)) return null;
  const dot = given.lastIndexOf('.');
  if (dot < prefix.length || given.length - dot - 1 !== MAC_CHARACTERS) return null;
  const text = given.slice(prefix.length, dot);
  // Compared as text: base64url decoding is lenient. Characters beyond ASCII would make the lengths
  // differ.
  const mac = Buffer.from(given.slice(dot + 1));
  if (mac.byteLength !== MAC_CHARACTERS) return null;
  const fits = keys.some(({ key }) => timingSafeEqual(mac, Buffer.from(macOf(key, prefix, text, place))));
  return fits ? text : null;
}

function macOf(key: Buffer, prefix: string, text: string, { sandboxId, port }: PreviewPlace): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([prefix, text, sandboxId, port]))
    .digest('base64url');
}
