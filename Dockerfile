# syntax=docker/dockerfile:1
# Build: generate the database client once, with all packages; run: production packages only, as an ordinary user.
FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY prisma ./prisma
COPY prisma.config.ts tsconfig.json ./
COPY scripts ./scripts
RUN node scripts/ensure-generated.mjs

FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
# The embedded PostgreSQL is for the demo and the tests; production brings its own.
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
COPY bin ./bin
COPY scripts ./scripts
COPY prisma ./prisma
COPY policies ./policies
COPY policy.yaml tsconfig.json ./
COPY src ./src
COPY --from=build /app/src/db/generated ./src/db/generated
USER node
EXPOSE 3000
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=4 \
  CMD node -e "fetch('http://127.0.0.1:'+(process.env.PORT||3000)+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"
ENTRYPOINT ["node", "bin/countersign.js"]
CMD ["start"]
