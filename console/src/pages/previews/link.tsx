// URL of a preview link. The page never requests it: only a press of the person opens it.
import { ExternalLink } from 'lucide-react';
import type { api } from '@berth/sdk';
import { webAddress } from '../../rules/web-address.ts';
import { previewsText as text } from '../../text/previews.ts';
import { CopyValue } from '../../ui/kit/index.ts';
import css from './previews.module.css';

/** @param refusal why the person does not see URLs of public links */
export function PreviewLink({ preview, refusal }: { preview: api.Preview; refusal: string | null }) {
  const { url, port, inactiveReason } = preview;
  if (inactiveReason !== null) return <span className={css.quiet}>{text.inactive(inactiveReason)}</span>;
  if (url === null) return <span className={css.quiet}>{refusal ?? text.none}</span>;
  const address = webAddress(url);
  return (
    <span className={css.link}>
      <CopyValue value={url} what={text.copy(port)} />
      {address === null ? null : (
        <a href={address} target="_blank" rel="noopener noreferrer" aria-label={text.openOf(port)}>
          <ExternalLink aria-hidden />
          {text.open}
        </a>
      )}
    </span>
  );
}
