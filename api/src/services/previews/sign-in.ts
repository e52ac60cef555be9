// Takes a signed-in person from the service to the preview of a team link. The link names the
// preview, the login the person. A grant in the redirect carries both to the preview's host, where
// no cookie of the service is sent.
import { lacksSso } from '../../rules/access/sso.ts';
import { withToken } from '../../rules/previews/credentials.ts';
import { previewOrigin, readPreviewPlace, type PreviewPlace } from '../../rules/previews/host.ts';
import { previewPath } from '../../rules/previews/path.ts';
import { findTeamAccess } from '../../store/previews/links.ts';
import type { ServiceContext } from '../context/context.ts';
import type { DerivedKeys } from '../context/secret-key.ts';
import { grantToken, readToken, type Person, type TeamTerms } from './token.ts';
import { canPreview, isGone } from './decision.ts';

/** Long enough for a redirect. */
const GRANTED_MS = 60_000;

/** A team link with a valid signature. */
type TeamLink = PreviewPlace & TeamTerms;

/** Reads the page's parameters; null if they hold no valid team link, or an expired one. */
export function readTeamLink(
  context: ServiceContext,
  given: { link: string; sandbox: string; port: string },
): TeamLink | null {
  const place = readPreviewPlace(given.sandbox, given.port);
  const token = place === null ? null : readToken(keysOf(context), given.link, place);
  if (place === null || token?.kind !== 'team' || token.expiresAtMs <= Date.now()) return null;
  return { ...place, expiresAtMs: token.expiresAtMs, embeddable: token.embeddable };
}

/**
 * URL of the preview at the path, with a grant for the person. `not_allowed`: not a member of the
 * sandbox's org, or in a role without preview access. `sso_required`: the sign-in must come from
 * the OIDC provider.
 */
export async function grantPreview(
  context: ServiceContext,
  person: Person,
  link: TeamLink,
  path: string,
): Promise<{ location: string } | 'not_allowed' | 'sso_required' | 'sandbox_gone'> {
  const visit = await findTeamAccess(context.db, { ...person, sandboxId: link.sandboxId });
  if (visit === undefined || !visit.signedIn || !canPreview(visit.role)) return 'not_allowed';
  if (lacksSso(visit)) return 'sso_required';
  if (isGone(visit.sandbox)) return 'sandbox_gone';
  const grant = grantToken(keysOf(context), { ...person, ...link, grantedUntilMs: Date.now() + GRANTED_MS }, link);
  return { location: previewOrigin(context.settings.previewUrl, link) + withToken(previewPath(path), grant) };
}

function keysOf({ secretKey }: ServiceContext): DerivedKeys {
  return secretKey.keysFor('preview-link');
}
