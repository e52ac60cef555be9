// Mail domains of addresses, as compared with proven domains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimDomain } from '@berth/contract/orgs/sso.ts';
import { lacksSso, mailDomain } from '../../../src/rules/access/sso.ts';

test('the domain of an address is the part after the last @, in lower case and punycode', () => {
  for (const [email, domain] of [
    ['a@example.com', 'example.com'],
    ['a@EXAMPLE.com', 'example.com'],
    ['a@example.com.', 'example.com'],
    ['"a@evil.test"@example.com', 'example.com'],
    ['a@example.com@evil.test', 'evil.test'],
    ['a@münchen.example', 'xn--mnchen-3ya.example'],
    ['a@ex\u00adample.com', 'example.com'],
    ['a@ｅｘａｍｐｌｅ.com', 'example.com'],
    ['a@é/example.com', 'é/example.com'],
    ['', ''],
  ] as const)
    assert.equal(mailDomain(email), domain, email);
});

test('SSO applies to addresses of exactly a proven domain', () => {
  const domains = ['example.com', 'example.org'];
  const needs = (email: string): boolean => lacksSso({ viaSso: false, sso: { email, domains } });
  assert.deepEqual(
    ['a@example.com', 'a@example.org', 'a@sub.example.com', 'a@notexample.com', 'a@com', ''].map(needs),
    [true, true, false, false, false, false],
  );
});

test('a claim is a domain name in ASCII; addresses, single labels and other text are refused', () => {
  const { domain } = claimDomain.request.body.shape;
  for (const name of ['example.com', 'a-b.c.example', 'xn--mnchen-3ya.example', '1.example', `${'a'.repeat(63)}.test`])
    assert.equal(domain.parse(name.toUpperCase()), name);
  const wrong = [
    ...['', 'localhost', 'com', '127.0.0.1', '1.2', 'example.com.', '.example.com', 'a..b', '-a.test', 'a-.test'],
    ...['a_b.test', '*.test', 'münchen.example', 'a b.test', 'a@b.test', 'http://a.test', 'a.test/', 'a.test\0'],
    ...[`${'a'.repeat(64)}.test`, `${'a.'.repeat(120)}test`],
  ];
  for (const name of wrong) assert.equal(domain.safeParse(name).success, false, name);
});
