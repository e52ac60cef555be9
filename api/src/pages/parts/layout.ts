// Frame of every page: head, service name, content, signed-in person.
import { html, type Html } from '../../rules/html.ts';
import { PASSKEY_SCRIPT_PATH } from './passkey-script.ts';
import type { ShownPage, SignedInVisitor } from './site.ts';
import { STYLE_PATH } from './style.ts';

export function document({ title, content, failed, script }: ShownPage, visitor: SignedInVisitor | null): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>${failed === true ? 'Error: ' : ''}${title} · Berth</title>
        <link rel="stylesheet" href="${STYLE_PATH}" />
        ${script === true ? html`<script src="${PASSKEY_SCRIPT_PATH}" defer></script>` : ''}
      </head>
      <body>
        ${BRAND}
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
        ${visitor === null ? '' : signedInAs(visitor)}
      </body>
    </html>`.toString();
}

function signedInAs({ user }: SignedInVisitor): Html {
  return html`<footer>
    <p>Signed in as <strong>${user.email}</strong></p>
    <p><a href="/sign-out">Sign out</a></p>
  </footer>`;
}

/** The logo: a boat on the water. */
const MARK = html`<svg class="mark" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" focusable="false">
  <rect class="mark-ground" width="32" height="32" rx="8" />
  <path
    class="mark-boat"
    d="M15 5.5v12H6.8zM17.2 9.5v8h6.3zM5.8 19.6h20.4l-2.1 4.2a3 3 0 0 1-2.7 1.7H10.6a3 3 0 0 1-2.7-1.7z"
  />
</svg>`;

export const BRAND = html`<header class="brand">${MARK}<span>Berth</span></header>`;
