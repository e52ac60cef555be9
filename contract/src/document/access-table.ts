// Generates the text of docs/access.md: permissions of each role and token, and the accepted tokens
// of each route. contract/test/document/print-access-table.ts prints it.
import { agentTokenAccess, agentTokenPermissions } from '../access/agent-tokens.ts';
import { ADMINISTRATION, INSTALLATION, permission, role, ROLE_PERMISSIONS } from '../route/permissions.ts';
import { AUTH_KINDS, isOfOperator, type AuthKind, type Route } from '../route/route.ts';
import { ROUTES } from '../routes.ts';

const KIND_HEADINGS: { readonly [kind in AuthKind]: string } = {
  session: 'access token',
  api_key: 'API key',
  agent_token: 'personal agent token',
};
const YES = '✓';
const NO = '';

/** The exact content of docs/access.md. */
export function accessTable(): string {
  return `# Access

Generated from \`contract/src\` by \`npm run docs:access\`.
\`contract/test/document/access-table.test.ts\` fails if this page is out of date.
\`api/test/sweeps/access-sweep.test.ts\` calls every route with every kind of token and compares the
server's decision with this page.

A call is allowed if all of these hold:

1. The route accepts the kind of token.
2. The token's user is a member of the org that the path belongs to.
3. The user's **current** role in that org has the permission of the route.
4. The token grants that permission.

| Token | Grants |
| --- | --- |
| Access token (auth kind \`session\`) | all permissions of the user's role |
| API key | its scopes, in its own org; without scopes all permissions, with \`[]\` none |
| Personal agent token | the permissions of the second table, in all orgs of its user |

An API key and a personal agent token act as their creator and never exceed the creator's role.
No API key can use a permission that administers the org, because a leaked key must not delete
projects, invite members, raise caps or create keys:
${ADMINISTRATION.slice(0, 3).map(code).join(', ')},
${ADMINISTRATION.slice(3).map(code).join(', ')}.

## Roles

${table(
  ['Permission', ...role.options],
  permission.options.map((name) => [code(name), ...role.options.map((who) => mark(ROLE_PERMISSIONS[who].has(name)))]),
)}
Adding, changing, removing and inviting owners also requires \`org.owners.manage\`. Creating a public
preview link, and reading its URL, also requires \`sandbox.preview.share\`. Setting \`agentApprovals\` of
a project to \`never\` also requires \`agent_approvals.disable\`.

${INSTALLATION.map(code).join(', ')} grants something in the
[operator's org](decisions/operator-org.md) only, the org that the first start created.

## Personal agent tokens

${table(
  [
    'Permission',
    ...agentTokenAccess.options.map(code),
    `${code('read_send')} with ${code('canApprove')}`,
    `${code('read_send')} with ${code('canWake')}`,
  ],
  agentTokenRows(),
)}
\`canApprove\` and \`canWake\` can be combined with each other, but not with \`read_only\`.

## Routes

Paths that need no token are listed in
[spec-gaps/open-paths.md](spec-gaps/open-paths.md).

${table(
  ['Route', 'Permission', 'Roles', ...AUTH_KINDS.map((kind) => KIND_HEADINGS[kind])],
  ROUTES.filter(({ auth }) => auth.length > 0).map(routeRow),
)}`;
}

function agentTokenRows(): string[][] {
  const kinds = [
    ...agentTokenAccess.options.map((access) => ({ access, canApprove: false, canWake: false })),
    { access: 'read_send' as const, canApprove: true, canWake: false },
    { access: 'read_send' as const, canApprove: false, canWake: true },
  ].map(agentTokenPermissions);
  const granted = permission.options.filter((name) => kinds.some((grants) => grants.has(name)));
  return granted.map((name) => [code(name), ...kinds.map((grants) => mark(grants.has(name)))]);
}

function routeRow(route: Route): string[] {
  return [
    code(`${route.method} ${route.path}`),
    route.permission === null ? 'none' : code(route.permission),
    rolesOf(route),
    ...AUTH_KINDS.map((kind) => mark(route.auth.includes(kind))),
  ];
}

function rolesOf(route: Route): string {
  const { permission: needed, path } = route;
  if (needed === null) return path.includes('{orgId}') ? 'any member' : 'any caller';
  const roles = role.options.filter((who) => ROLE_PERMISSIONS[who].has(needed)).join(', ');
  return isOfOperator(route) ? `${roles} of the operator's org` : roles;
}

function code(text: string): string {
  return `\`${text}\``;
}

function mark(has: boolean): string {
  return has ? YES : NO;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|\n`;
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`;
}
