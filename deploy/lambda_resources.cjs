// Roles and alarms of the functions of serverless.yml, and the container that streams.
//
// osls merges what this file returns into the CloudFormation template.

// What Lambda assumes, and may do nothing but write the log, and send a failed call to the queue.
const role = (log, queue) => ({
  Type: "AWS::IAM::Role",
  Properties: {
    AssumeRolePolicyDocument: {
      Version: "2012-10-17",
      Statement: [{ Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" }, Action: "sts:AssumeRole" }],
    },
    Policies: [
      {
        PolicyName: "own-log",
        PolicyDocument: {
          Version: "2012-10-17",
          Statement: [
            { Effect: "Allow", Action: ["logs:CreateLogStream", "logs:PutLogEvents"], Resource: arn(log) },
            ...(queue ? [{ Effect: "Allow", Action: ["sqs:SendMessage"], Resource: queue }] : []),
          ],
        },
      },
    ],
  },
});

const arn = (id) => ({ "Fn::GetAtt": [id, "Arn"] });

// An alarm on the sum of a metric in five minutes. Its description names the section of the runbook.
const alarm = (section, description, metric, [dimension, value], threshold, periods = 1) => ({
  Type: "AWS::CloudWatch::Alarm",
  Properties: {
    AlarmDescription: `${description} docs/runbook.md#${section}`,
    Namespace: `AWS/${metric[0]}`,
    MetricName: metric[1],
    Dimensions: [{ Name: dimension, Value: value }],
    Statistic: "Sum",
    Period: 300,
    EvaluationPeriods: periods,
    Threshold: threshold,
    ComparisonOperator: "GreaterThanOrEqualToThreshold",
    TreatMissingData: "notBreaching",
    AlarmActions: [{ Ref: "AlarmTopic" }],
    OKActions: [{ Ref: "AlarmTopic" }],
  },
});

const alarms = (prefix, name, functionId) => {
  const dimension = ["FunctionName", { Ref: functionId }];
  return {
    [`${prefix}Errors`]: alarm(
      "lambdaerrors", `${name} ended without a response.`, ["Lambda", "Errors"], dimension, 3,
    ),
    [`${prefix}Throttles`]: alarm(
      "lambdathrottles", `${name} refused requests.`, ["Lambda", "Throttles"], dimension, 1, 2,
    ),
  };
};

// The prefix that osls gives a function's resources.
const prefixOf = (slug) => (slug[0].toUpperCase() + slug.slice(1)).replaceAll("-", "Dash");

const ofFunction = ([slug, { role: roleId, destinations }]) => ({
  [roleId]: role(`${prefixOf(slug)}LogGroup`, destinations?.onFailure.arn),
  ...alarms(prefixOf(slug), slug, `${prefixOf(slug)}LambdaFunction`),
});

const shared = {
  ApiErrors: alarm(
    "apierrors", "API Gateway answered with 5xx.", ["ApiGateway", "5xx"], ["ApiId", { Ref: "HttpApi" }], 10,
  ),
  IngestDeadLettersWaiting: alarm(
    "ingestdeadletters", "Calls of the worker failed.", ["SQS", "ApproximateNumberOfMessagesVisible"],
    ["QueueName", { "Fn::GetAtt": ["IngestDeadLetters", "QueueName"] }], 1,
  ),
};

// Functions whose answers may stream. The URL of their container streams; API Gateway does not.
const STREAMING = ["chat", "chat-completions", "v1-answer"];

const streams = (image, provider, functions) => {
  const streaming = STREAMING.map((slug) => functions[slug]);
  const variables = Object.assign({}, provider.environment, ...streaming.map(({ environment }) => environment), {
    RAG_FUNCTIONS: STREAMING.join(","),
    AWS_LWA_INVOKE_MODE: "response_stream",
    AWS_LWA_PORT: "8080",
    AWS_LWA_READINESS_CHECK_PATH: "/health",
  });
  const permission = (fields) => ({
    Type: "AWS::Lambda::Permission",
    Properties: { FunctionName: { Ref: "Streams" }, Principal: "*", ...fields },
  });
  return {
    Streams: {
      Type: "AWS::Lambda::Function",
      Properties: {
        PackageType: "Image",
        Code: { ImageUri: image },
        Architectures: [provider.architecture],
        Timeout: Math.max(...streaming.map(({ timeout }) => timeout)),
        MemorySize: provider.memorySize,
        Role: arn("StreamsRole"),
        LoggingConfig: { LogGroup: { Ref: "StreamsLogGroup" } },
        ReservedConcurrentExecutions: functions.chat.reservedConcurrency,
        Environment: {
          Variables: Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== null)),
        },
      },
    },
    StreamsLogGroup: {
      Type: "AWS::Logs::LogGroup",
      Properties: { RetentionInDays: provider.logRetentionInDays },
    },
    StreamsRole: role("StreamsLogGroup"),
    ...alarms("Streams", "The streaming container", "Streams"),
    StreamsUrl: {
      Type: "AWS::Lambda::Url",
      Properties: { AuthType: "NONE", InvokeMode: "RESPONSE_STREAM", TargetFunctionArn: arn("Streams") },
    },
    StreamsUrlPermission: permission({ Action: "lambda:InvokeFunctionUrl", FunctionUrlAuthType: "NONE" }),
    StreamsInvokePermission: permission({ Action: "lambda:InvokeFunction", InvokedViaFunctionUrl: true }),
  };
};

module.exports = async ({ resolveVariable }) => {
  const functions = await resolveVariable("self:functions");
  const image = await resolveVariable("param:stream-image, ''");
  const ofFunctions = Object.assign({}, ...Object.entries(functions).map(ofFunction), shared);
  if (!image) return { Resources: ofFunctions };
  return {
    Resources: { ...ofFunctions, ...streams(image, await resolveVariable("self:provider"), functions) },
    Outputs: { StreamsUrl: { Value: { "Fn::GetAtt": ["StreamsUrl", "FunctionUrl"] } } },
  };
};
