// Calls of the API as code, in the language that the person chooses.
import { Fragment, useState } from 'react';
import { snippet, type Call, type Language, type Service } from '../../rules/snippets.ts';
import { snippetsText as text } from '../../text/snippets.ts';
import { Choices } from '../forms/choices.tsx';
import { CopyValue } from '../copy.tsx';

interface SnippetsProps {
  calls: readonly { name: string; call: Call }[];
  apiKey?: Service['apiKey'];
}

export function Snippets({ calls, apiKey }: SnippetsProps) {
  const [language, setLanguage] = useState<Language>('curl');
  return (
    <>
      <Choices legend={text.language} value={language} choices={text.languages} onChange={setLanguage} />
      {apiKey === undefined ? <p>{text.keyHint}</p> : null}
      {calls.map(({ name, call }) => (
        <Fragment key={name}>
          {calls.length === 1 ? null : <strong>{name}</strong>}
          <CopyValue block value={snippet(language, call, { url: location.origin, apiKey })} what={text.copy(name)} />
        </Fragment>
      ))}
    </>
  );
}
