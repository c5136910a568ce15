/** Why a file could not be read or written, in words for whoever named it. Pure. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a part of that path is a file, not a folder",
  EISDIR: "that is a folder, not a file",
  EEXIST: "that is a file, not a folder",
  EACCES: "this user may not",
  EPERM: "this user may not",
  EROFS: "that disk is read-only",
  ENOSPC: "the disk is full",
  ENAMETOOLONG: "that name is too long",
  ELOOP: "its links lead in a circle",
};

/** The reason as a part of a sentence; what is not known here keeps the words of the system. */
export function fileReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return REASONS[code] ?? (error instanceof Error ? error.message : String(error));
}

/** As `fileReason`, of a folder that was to be made with everything above it: what is missing then can only be behind a link. */
export const folderReason = (error: unknown): string =>
  error instanceof Error && "code" in error && error.code === "ENOENT"
    ? "a part of that path is a link that leads nowhere"
    : fileReason(error);
