// The chosen file: text in the editor, an image after a press, the first bytes of anything else.
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useState } from 'react';
import type { api } from '@berth/sdk';
import { fileQuery, headQuery } from '../../queries/files.ts';
import { copyCommand, EDIT_BYTES, hexRows, imageType, PREVIEW_BYTES } from '../../rules/files.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { filesText as text } from '../../text/files.ts';
import { Button, Loading, Time, Untrusted } from '../../ui/kit/index.ts';
import { Loaded } from '../frame/content.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import css from './files.module.css';

const EditFile = lazy(async () => ({ default: (await import('./edit-file.tsx')).EditFile }));

interface ViewerProps {
  entry: api.FileEntry;
  /** Why the file cannot be changed; null: it can. */
  reason: string | null;
  awake: boolean;
}

export function Viewer(props: ViewerProps) {
  const { entry } = props;
  const kind = entry.kind ?? entry.type;
  return (
    <>
      <h2 className={css.title}>
        <Untrusted text={entry.path} />
      </h2>
      <p className={css.facts}>
        {text.kinds[kind] ?? kind}
        {kind === 'file' && entry.size !== undefined ? `, ${text.bytes(entry.size)}` : null}
        {entry.modifiedAt ? (
          <>
            , <Time at={entry.modifiedAt} />
          </>
        ) : null}
      </p>
      {kind === 'directory' ? <p className={css.none}>{text.emptyCode}</p> : null}
      {kind === 'other' ? <p>{text.special}</p> : null}
      {kind === 'file' || kind === 'link' ? <Content {...props} /> : null}
    </>
  );
}

function Content(props: ViewerProps) {
  const { entry, awake } = props;
  const { id } = useSandboxInView().sandbox;
  const long = (entry.size ?? 0) > PREVIEW_BYTES;
  const file = useQuery({ ...fileQuery(id, entry.path), enabled: awake && !long });
  const head = useQuery({ ...headQuery(id, entry.path), enabled: awake && long });
  if (long) return <Loaded query={head}>{(bytes) => <Hex bytes={bytes} hint={text.longHint} />}</Loaded>;
  return (
    <Loaded query={file}>
      {(content) => {
        if (content.encoding !== 'utf8') return <Binary entry={entry} content={content.content} />;
        const reason = props.reason ?? (content.size > EDIT_BYTES ? text.readOnly(copyCommand(id)) : null);
        return (
          <Suspense fallback={<Loading />}>
            <EditFile file={content} reason={reason} />
          </Suspense>
        );
      }}
    </Loaded>
  );
}

function Binary({ entry, content }: { entry: api.FileEntry; content: string }) {
  const [bytes] = useState(() => Uint8Array.from(atob(content), (character) => character.charCodeAt(0)));
  const type = imageType(entry.path);
  return (
    <>
      {type === null ? null : <Picture name={visibleText(entry.label)} type={type} bytes={bytes} />}
      <Hex bytes={bytes} hint={text.hexHint} />
    </>
  );
}

function Picture({ name, type, bytes }: { name: string; type: string; bytes: Uint8Array<ArrayBuffer> }) {
  const [url, setUrl] = useState<string | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => (url === null ? undefined : () => URL.revokeObjectURL(url)), [url]);
  if (failed) return <p>{text.imageFailed}</p>;
  if (url !== null)
    return <img className={css.image} src={url} alt={text.image(name)} onError={() => setFailed(true)} />;
  return (
    <p>
      {text.imageHint}{' '}
      <Button onClick={() => setUrl(URL.createObjectURL(new Blob([bytes], { type })))}>{text.showImage}</Button>
    </p>
  );
}

function Hex({ bytes, hint }: { bytes: Uint8Array; hint: string }) {
  const rows = hexRows(bytes);
  return (
    <section className={css.hex}>
      <h3>{text.hex}</h3>
      <p>{hint}</p>
      <textarea readOnly aria-label={text.hex} rows={rows.length} wrap="off" value={rows.join('\n')} />
    </section>
  );
}
